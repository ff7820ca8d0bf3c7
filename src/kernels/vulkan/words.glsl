// Reads of a buffer of words at any byte: WORD_NAME(at), the 32 bits that begin at byte `at`, and
// HALF_NAME(at), 16 bits. A word that holds nothing of them is not touched. Included once for each
// buffer WORDS.
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
#undef WORD_NAME
#undef HALF_NAME
#undef WORDS
