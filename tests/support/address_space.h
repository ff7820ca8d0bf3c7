// AddressSpaceLimit: how much the program may map, for a part of one test (`ulimit -v`).
#ifndef ASSAY_TESTS_SUPPORT_ADDRESS_SPACE_H_
#define ASSAY_TESTS_SUPPORT_ADDRESS_SPACE_H_

#include <cstdint>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace assay {

// What is mapped now. The sanitizers map far more than any limit leaves.
inline uint64_t MappedBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Sets it, and sets back what was when it ends.
class AddressSpaceLimit final {
 public:
  explicit AddressSpaceLimit(uint64_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    struct rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressSpaceLimit() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  struct rlimit before_ {};
};

}  // namespace assay

#endif  // ASSAY_TESTS_SUPPORT_ADDRESS_SPACE_H_
