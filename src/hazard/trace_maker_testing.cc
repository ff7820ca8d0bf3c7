#include "hazard/trace_maker_testing.h"

namespace assay::hazard {
namespace {

using trace::BufferId;
using trace::Event;
using trace::KernelId;

constexpr uint64_t kBufferBytes = 12;
constexpr size_t kMaxDispatches = 8;

// Reads small numbers from a recipe; past its end, zeros.
class Recipe {
 public:
  explicit Recipe(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  uint64_t Below(uint64_t limit) { return at_ < bytes_.size() ? bytes_[at_++] % limit : 0; }
  bool AtEnd() const { return at_ >= bytes_.size(); }

 private:
  const std::vector<uint8_t>& bytes_;
  size_t at_ = 0;
};

trace::BufferAccess MakeAccess(Recipe& recipe, uint64_t buffer_count) {
  constexpr Access kAccesses[] = {Access::kRead, Access::kWrite, Access::kReadWrite};
  trace::BufferAccess access;
  access.buffer = BufferId(recipe.Below(buffer_count));
  access.access = kAccesses[recipe.Below(3)];
  access.range.begin = recipe.Below(kBufferBytes);
  access.range.end = access.range.begin + recipe.Below(6);
  access.exact = recipe.Below(4) != 3;
  return access;
}

// Makes a trace out of any numbers: one recipe an event.
class TraceMaker {
 public:
  TraceMaker() {
    MakeBuffer("");
    MakeBuffer("");
    MakeBuffer("00ff");
    events_.push_back(trace::KernelEvent{.kernel = KernelId(0),
                                         .name = "k",
                                         .digest = "00",
                                         .workgroup = {},
                                         .spec = "",
                                         .shared_bytes = 0});
  }

  void Add(const std::vector<uint8_t>& bytes) {
    Recipe recipe(bytes);
    const uint64_t what = recipe.Below(16);
    if (open_) {
      AddInside(what, recipe);
    } else {
      AddOutside(what, recipe);
    }
  }
  std::vector<Event> Finish() {
    if (open_) events_.push_back(trace::CommitEvent{});
    open_ = false;
    return events_;
  }

 private:
  void MakeBuffer(const std::string& digest) {
    events_.push_back(trace::BufferEvent{.buffer = BufferId(buffer_count_++),
                                         .size_bytes = kBufferBytes,
                                         .kind = BufferKind::kScratch,
                                         .label = "",
                                         .digest = digest});
  }

  void AddInside(uint64_t what, Recipe& recipe) {
    if (what >= 14 || dispatches_ == kMaxDispatches) {
      events_.push_back(trace::CommitEvent{});
      open_ = false;
    } else if (what >= 11) {
      events_.push_back(trace::BarrierEvent{});
    } else {
      trace::DispatchEvent dispatch;
      if (what != 10) {
        do {
          dispatch.accesses.push_back(MakeAccess(recipe, buffer_count_));
        } while (!recipe.AtEnd() && dispatch.accesses.size() < 4);
      }
      events_.push_back(dispatch);
      ++dispatches_;
    }
  }

  void AddOutside(uint64_t what, Recipe& recipe) {
    if (what < 9) {
      events_.push_back(trace::BeginEvent{});
      open_ = true;
      dispatches_ = 0;
    } else if (what == 9) {
      events_.push_back(trace::WaitEvent{});
    } else if (what < 12) {
      const trace::BufferAccess access = MakeAccess(recipe, buffer_count_);
      events_.push_back(trace::HostReadEvent{access.buffer, access.range});
    } else if (what < 14) {
      const trace::BufferAccess access = MakeAccess(recipe, buffer_count_);
      events_.push_back(trace::HostWriteEvent{access.buffer, access.range});
    } else if (what == 14) {
      events_.push_back(trace::FreeEvent{BufferId(recipe.Below(buffer_count_))});
    } else {
      MakeBuffer("");
    }
  }

  std::vector<Event> events_;
  uint64_t buffer_count_ = 0;
  bool open_ = false;
  size_t dispatches_ = 0;
};

}  // namespace

std::vector<Event> MakeTrace(const std::vector<std::vector<uint8_t>>& recipes) {
  TraceMaker maker;
  for (const std::vector<uint8_t>& recipe : recipes) maker.Add(recipe);
  return maker.Finish();
}

std::string Listing(std::span<const Event> events) {
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    text += std::to_string(i + 1) + "  " + trace::FormatEvent(events[i]) + "\n";
  }
  return text;
}

}  // namespace assay::hazard
