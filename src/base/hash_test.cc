#include "base/hash.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(HashTest, KnownAnswer) {
  // XXH3-128 of no bytes, from the algorithm's published test vectors.
  EXPECT_EQ(HexDigest(std::string_view("")), "99aa06d3014798d86001c324468d497f");
}

TEST(HashTest, CutDoesNotMatter) {
  const std::string text(100000, 'x');
  Hasher hasher;
  for (size_t i = 0; i < text.size(); i += 997)
    hasher.Update(std::string_view(text).substr(i, 997));
  EXPECT_EQ(hasher.HexDigest(), HexDigest(text));
}

TEST(HashTest, CopyGoesOnByItself) {
  Hasher first;
  first.Update(std::string_view("common "));
  Hasher second(first);
  first.Update(std::string_view("one"));
  second.Update(std::string_view("two"));
  EXPECT_EQ(first.HexDigest(), HexDigest(std::string_view("common one")));
  EXPECT_EQ(second.HexDigest(), HexDigest(std::string_view("common two")));
}

}  // namespace
}  // namespace assay
