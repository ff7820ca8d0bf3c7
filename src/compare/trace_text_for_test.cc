#include "compare/trace_text_for_test.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/hash.h"
#include "compare/line_names.h"

namespace assay::compare {

LineList SplitLines(std::string_view text) {
  LineList lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end != 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string Seal(const LineList& lines, int version) {
  std::string text = fmt::format("assay-trace {}\n", version);
  for (const std::string& line : lines) text += line + "\n";
  return text + fmt::format("end events={} digest={}\n", lines.size() + 1,
                            HexDigest(std::string_view(text)));
}

LineList RandomProgram(uint32_t seed, size_t steps) {
  std::mt19937 rng(seed);
  const auto below = [&](uint32_t limit) { return rng() % limit; };
  LineList lines = {"meta backend cpu"};
  const uint32_t buffers = 4 + below(8);
  for (uint32_t i = 0; i < buffers; ++i) {
    if (below(2) == 0) {
      lines.push_back(fmt::format("buffer #{} size=4096 kind=weight label=\"w.{}\"", i, i));
    } else {
      lines.push_back(fmt::format("buffer #{} size=1024 kind=scratch", i));
    }
    if (below(3) == 0)
      lines.push_back(fmt::format("write #{}[0,{})", below(i + 1), 512 + below(512)));
  }
  const uint32_t kernels = 2 + below(3);
  uint32_t declared = 0;
  for (size_t step = 0; step < steps; ++step) {
    LineList commands;
    for (uint32_t i = 0, count = 1 + below(6); i < count; ++i) {
      const uint32_t kernel = below(std::min(declared + 1, kernels));
      if (kernel == declared) {
        lines.push_back(fmt::format("kernel k{} name=kernel_{} digest=a{} workgroup=64,1,1", kernel,
                                    kernel, kernel));
        ++declared;
      }
      std::string line =
          fmt::format("dispatch k{} grid={},1,1 args={:08x}", kernel, 1 + below(4), step);
      for (uint32_t binding = 0; binding < 2 + kernel; ++binding) {
        line += fmt::format(" {}#{}[0,{})", binding == 0 ? "w" : "r", below(buffers),
                            64 * (1 + below(8)));
      }
      commands.push_back(line);
      if (below(2) == 0) commands.push_back("barrier");
    }
    lines.push_back("begin");
    lines.insert(lines.end(), commands.begin(), commands.end());
    lines.push_back("commit");
    if (below(3) == 0) lines.push_back("wait");
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    if (below(2) == 0) lines.push_back(fmt::format("free #{}", i));
  }
  return lines;
}

LineList RenumberInPlace(const LineList& lines, std::mt19937* rng, bool* changed) {
  std::vector<uint64_t> numbers;
  for (const std::string& line : lines) {
    LineName name;
    if (IsBufferLine(line) && LineNames(line).Next(&name)) numbers.push_back(name.number);
  }
  std::vector<uint64_t> targets = numbers;
  std::ranges::shuffle(targets, *rng);
  *changed = targets != numbers;
  std::map<uint64_t, uint64_t> map;
  for (size_t i = 0; i < numbers.size(); ++i) map[numbers[i]] = targets[i];
  LineList renumbered;
  for (const std::string& line : lines) {
    std::string& out = renumbered.emplace_back();
    size_t done = 0;
    LineNames names(line);
    for (LineName name; names.Next(&name); done = name.end) {
      out.append(line, done, name.begin - done);
      out += std::to_string(name.is_kernel ? name.number : map.at(name.number));
    }
    out.append(line, done);
  }
  return renumbered;
}

}  // namespace assay::compare
