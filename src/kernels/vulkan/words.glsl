// Reads of a buffer of words at any byte: WORD_NAME(at), the 32 bits that begin at byte `at`, and
// HALF_NAME(at), 16 bits; and where it has a name QUAD_NAME(at), 128 bits. A word that holds nothing
// of them is not touched. Included once for each buffer WORDS.
uint WORD_NAME(uint at) {
  const uint shift = (at & 3u) * 8u;
  const uint low = WORDS[at >> 2];
  if (shift == 0u) return low;
  return low >> shift | WORDS[(at >> 2) + 1u] << (32u - shift);
}
uint HALF_NAME(uint at) {
  const uint shift = (at & 3u) * 8u;
  const uint low = WORDS[at >> 2] >> shift;
  if (shift < 24u) return low & 0xFFFFu;
  return (low | WORDS[(at >> 2) + 1u] << 8) & 0xFFFFu;
}
#ifdef QUAD_NAME
uvec4 QUAD_NAME(uint at) {
  const uint i = at / 4u;
  const uvec4 words = uvec4(WORDS[i], WORDS[i + 1u], WORDS[i + 2u], WORDS[i + 3u]);
  const uint last = WORDS[(at + 15u) / 4u];
  const uint shift = (at & 3u) * 8u;
  const uvec4 behind = uvec4(words.yzw, last);
  return words >> shift | behind << 1u << (31u - shift);
}
#undef QUAD_NAME
#endif
#undef WORD_NAME
#undef HALF_NAME
#undef WORDS
