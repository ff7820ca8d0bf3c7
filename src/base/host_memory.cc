#include "base/host_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace assay {
namespace {

uint64_t SystemNumber(int name) { return static_cast<uint64_t>(std::max(sysconf(name), 0L)); }

// The beginning of a file of /proc, which is all that is wanted. Allocates nothing: this is called
// when memory is short.
using Page = std::array<char, 4096>;
std::string_view ReadPage(const char* path, Page* page) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = read(fd, page->data(), page->size());
  close(fd);
  return {page->data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

// The number behind `key` and spaces; 0 where there is none.
uint64_t NumberBehind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

HostMemory ReadHostMemory() {
  HostMemory memory;
  const uint64_t page_bytes = SystemNumber(_SC_PAGESIZE);
  memory.total_bytes = SystemNumber(_SC_PHYS_PAGES) * page_bytes;
  Page page;
  const std::string_view info = ReadPage("/proc/meminfo", &page);
  const uint64_t available = NumberBehind(info, "MemAvailable:") << 10;
  const uint64_t swap = NumberBehind(info, "SwapFree:") << 10;
  memory.free_bytes = available == 0 ? memory.total_bytes : available + swap;
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return memory;
  const uint64_t allowed = limit.rlim_cur;
  const uint64_t used = NumberBehind(ReadPage("/proc/self/statm", &page), "") * page_bytes;
  const uint64_t left = allowed - std::min<uint64_t>(allowed, used);
  if (left > memory.free_bytes) return memory;
  return {
      .total_bytes = std::min(memory.total_bytes, allowed), .free_bytes = left, .limited = true};
}

}  // namespace assay
