// E6, E11: a lie of every kind that a checked device promises to see, in a hundred places each. The
// lie is caught every time, by name and bytes, and changes no buffer; its honest twin passes.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/check/guarded_memory.h"
#include "gpu/cpu/cpu_kernel.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;

constexpr int kTrials = 100;

// --- A kernel that lies as it is told

// Copies `words` uint32 from binding 0 + from to binding 1 + to, both in bytes, and the last of
// them as told here.
struct Orders {
  int64_t from = 0;
  int64_t to = 0;
  uint32_t words = 1;
  // In words of shared memory, -1 for none: written, and then read into the result.
  int32_t shared_write = -1;
  int32_t shared_read = -1;
  // Only workgroup 0 writes shared memory.
  uint32_t first_alone = 0;
  // Each workgroup adds binding 1's first word to what it writes there.
  uint32_t race = 0;
  // Reads this many bytes behind the constants, 0 for none.
  uint32_t behind_constants = 0;
  uint64_t address = 0;  // Writes there when not 0.
};

void Obey(const CpuKernelArgs& args, Extent3 group) {
  Orders orders;
  std::memcpy(&orders, args.constants, sizeof(orders));
  const std::byte* in = args.bindings[0] + orders.from;
  std::byte* out = args.bindings[1] + orders.to;
  for (uint32_t i = 0; i < orders.words; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, in + i * sizeof(word), sizeof(word));
    if (orders.shared_write >= 0 && (orders.first_alone == 0 || group.x == 0)) {
      std::memcpy(args.shared.data() + orders.shared_write * 4, &word, sizeof(word));
    }
    if (orders.shared_read >= 0) {
      std::memcpy(&word, args.shared.data() + orders.shared_read * 4, sizeof(word));
    }
    if (orders.behind_constants > 0) {
      uint32_t behind = 0;
      std::memcpy(&behind, args.constants + sizeof(orders) + orders.behind_constants, 4);
      word += behind;
    }
    if (orders.race != 0) {
      uint32_t before = 0;
      std::memcpy(&before, out, sizeof(before));
      word = before * 31 + group.x;
    }
    std::memcpy(out + i * sizeof(word), &word, sizeof(word));
  }
  if (orders.address != 0) *reinterpret_cast<volatile uint32_t*>(orders.address) = 1;
}

constexpr CpuKernel kObey = {[]() -> CpuWorkgroupFn { return Obey; },
                             []() -> std::string_view { return "test"; }};
constexpr std::array kObeyCodes = {KernelCode{kCpuCodeFormat, &kObey, sizeof(CpuKernel)}};

// --- Trials

struct Side {
  uint64_t size = 0;
  ByteRange range;
  Access access = Access::kRead;
};

// One dispatch; `says` is what the error must hold, empty for an honest one.
struct Act {
  Side in;
  Side out;
  Orders orders;
  uint32_t workgroups = 1;
  uint32_t shared_bytes = 0;
  std::string says;
};

using Random = std::mt19937_64;

uint64_t Between(Random& random, uint64_t low, uint64_t high) {
  return low + random() % (high - low + 1);
}
// In words, so that a copied word lies in one place or the other.
uint64_t Words(Random& random, uint64_t low, uint64_t high) {
  return 4 * Between(random, low / 4, high / 4);
}

// A bound range of some words, with `before` and `behind` bytes of the buffer around it.
Side AnySide(Random& random, Access access, uint64_t before, uint64_t behind) {
  const uint64_t length = Words(random, 64, 8192);
  return {before + length + behind, {before, before + length}, access};
}

// A dispatch that copies a word within what it declares.
Act Honest(Random& random) {
  Act act;
  act.in = AnySide(random, Access::kRead, Words(random, 0, 300), Words(random, 0, 300));
  act.out = AnySide(random, Access::kWrite, Words(random, 0, 300), Words(random, 0, 300));
  act.orders.words = static_cast<uint32_t>(Between(random, 1, 8));
  return act;
}

constexpr uint64_t kNear = 4000;         // Reaches filler.
constexpr uint64_t kFar = 64 << 10;      // Reaches a guard.
constexpr uint64_t kFarther = 3u << 30;  // Still does.

std::string Names(const char* verb, const char* buffer, int64_t begin, uint64_t bytes) {
  return fmt::format("kernel \"obey\", {} bytes [{}, {}) of buffer \"{}\"", verb, begin,
                     begin + static_cast<int64_t>(bytes), buffer);
}

// Said of a place outside the buffer.
std::string Size(const Side& side, int64_t place) {
  if (place >= 0 && place < static_cast<int64_t>(side.size)) return "";
  return fmt::format("; the buffer has {} bytes", side.size);
}

// `to` or `from` moved to the byte `place` of the buffer.
Act WritesAt(Act act, int64_t place, bool near) {
  act.orders.to = place - static_cast<int64_t>(act.out.range.begin);
  act.says = Names("writes", "out", place, near ? 4u * act.orders.words : 1) +
             fmt::format(", outside its nearest binding 1 [{}, {}){}.", act.out.range.begin,
                         act.out.range.end, Size(act.out, place));
  return act;
}
Act ReadsAt(Act act, int64_t place, bool near) {
  act.orders.from = place - static_cast<int64_t>(act.in.range.begin);
  act.says = Names("reads", "in", place, near ? 4u * act.orders.words : 1) +
             fmt::format(", outside its nearest binding 0 [{}, {}){}.", act.in.range.begin,
                         act.in.range.end, Size(act.in, place));
  return act;
}
int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

struct Lie {
  std::string name;
  std::function<Act(Random&)> tell;
  // The twin: the same place, told as it is. Where absent, the copy stays within what it declares.
  std::function<Act(Act)> mend;
};

// Out of range: the twin does the same inside.
Act Inside(Act act) {
  act.orders.to = 0;
  act.orders.from = 0;
  act.says.clear();
  return act;
}

std::vector<Lie> Lies() {
  std::vector<Lie> lies;
  const auto add = [&](std::string name, std::function<Act(Random&)> tell,
                       std::function<Act(Act)> mend = Inside) {
    lies.push_back({std::move(name), std::move(tell), std::move(mend)});
  };
  add("WriteElsewhereInTheBuffer", [](Random& random) {
    Act act = Honest(random);
    act.out = AnySide(random, Access::kWrite, 5000, 5000);
    const int64_t place = random() % 2 == 0
                              ? Signed(act.out.range.begin - Words(random, 32, kNear))
                              : Signed(act.out.range.end + Words(random, 0, kNear - 32));
    return WritesAt(act, place, /*near=*/true);
  });
  add("WriteFarAwayInTheBuffer", [](Random& random) {
    Act act = Honest(random);
    act.out = AnySide(random, Access::kWrite, 512 << 10, 512 << 10);
    const int64_t place = random() % 2 == 0
                              ? Signed(act.out.range.begin - Words(random, kFar, 512 << 10))
                              : Signed(act.out.range.end + Words(random, kFar, 500 << 10));
    return WritesAt(act, place, /*near=*/false);
  });
  add("WriteBehindTheBuffersEnd", [](Random& random) {
    Act act = Honest(random);
    act.out = AnySide(random, Access::kWrite, 128, 0);
    return WritesAt(act, Signed(act.out.size + Words(random, 0, kNear - 32)), /*near=*/true);
  });
  add("WriteAheadOfTheBuffer", [](Random& random) {
    Act act = Honest(random);
    act.out = AnySide(random, Access::kWrite, 0, 128);
    return WritesAt(act, -Signed(Words(random, 32, kNear)), /*near=*/true);
  });
  add("WriteWhereAnotherBufferMayLie", [](Random& random) {
    Act act = Honest(random);
    const int64_t away = Signed(Words(random, kFar, kFarther));
    return WritesAt(act, random() % 2 == 0 ? -away : Signed(act.out.size) + away, /*near=*/false);
  });
  // Both ends of the copy are wrong: the place has what lies outside anyway.
  add("CopyFromOutsideToOutside", [](Random& random) {
    Act act = Honest(random);
    act.in = AnySide(random, Access::kRead, 64, 64);
    act.orders.from = Signed(act.in.range.size() + Words(random, 64, kNear - 32));
    act = WritesAt(act, Signed(act.out.range.end + Words(random, 0, kNear - 32)), /*near=*/true);
    // One byte in 28 arrives where its like stood, so that the range may be a little narrower.
    act.says = fmt::format("of buffer \"out\", outside its nearest binding 1 [{}, {})",
                           act.out.range.begin, act.out.range.end);
    return act;
  });
  add(
      "WriteToABindingDeclaredRead",
      [](Random& random) {
        Act act = Honest(random);
        act.out.access = Access::kRead;
        act.says = Names("writes", "out", Signed(act.out.range.begin), 4u * act.orders.words) +
                   ", which binding 1 declares as r.";
        return act;
      },
      [](Act act) {
        act.out.access = Access::kWrite;
        act.says.clear();
        return act;
      });
  add(
      "WriteFurtherThanAnyGuard",
      [](Random& random) {
        Act act = Honest(random);
        act.orders.address = Words(random, 8, 4000);
        act.says = "touches memory further than 4294967296 bytes from all that it binds";
        return act;
      },
      [](Act act) {
        act.orders.address = 0;
        act.says.clear();
        return act;
      });
  add("ReadElsewhereInTheBuffer", [](Random& random) {
    Act act = Honest(random);
    act.in = AnySide(random, Access::kRead, 5000, 5000);
    const int64_t place = random() % 2 == 0
                              ? Signed(act.in.range.begin - Words(random, 32, kNear))
                              : Signed(act.in.range.end + Words(random, 0, kNear - 32));
    return ReadsAt(act, place, /*near=*/true);
  });
  add("ReadFarAwayInTheBuffer", [](Random& random) {
    Act act = Honest(random);
    act.in = AnySide(random, Access::kRead, 512 << 10, 512 << 10);
    return ReadsAt(act, Signed(act.in.range.end + Words(random, kFar, 500 << 10)), /*near=*/false);
  });
  add("ReadBehindTheBuffersEnd", [](Random& random) {
    Act act = Honest(random);
    act.in = AnySide(random, Access::kRead, 128, 0);
    return ReadsAt(act, Signed(act.in.size + Words(random, 0, kNear - 32)), /*near=*/true);
  });
  add("ReadWhereAnotherBufferMayLie", [](Random& random) {
    Act act = Honest(random);
    const int64_t away = Signed(Words(random, kFar, kFarther));
    return ReadsAt(act, random() % 2 == 0 ? -away : Signed(act.in.size) + away, /*near=*/false);
  });
  add(
      "ReadOfPoisonInABindingDeclaredWrite",
      [](Random& random) {
        Act act = Honest(random);
        act.in.access = Access::kWrite;
        act.says = Names("reads", "in", Signed(act.in.range.begin), 4u * act.orders.words) +
                   ", which binding 0 declares as w.";
        return act;
      },
      [](Act act) {
        act.in.access = Access::kReadWrite;
        act.says.clear();
        return act;
      });
  const auto shared_mended = [](Act act) {
    act.orders.shared_read = act.orders.shared_write = 3;
    act.orders.first_alone = 0;
    act.says.clear();
    return act;
  };
  add(
      "ReadOfSharedMemoryThatNobodyWrote",
      [](Random& random) {
        Act act = Honest(random);
        act.shared_bytes = static_cast<uint32_t>(Words(random, 64, 4096));
        act.orders.shared_read = static_cast<int32_t>(random() % (act.shared_bytes / 4));
        act.says = "reads shared memory that its workgroup has not written";
        return act;
      },
      shared_mended);
  add(
      "ReadOfSharedMemoryOfAnotherWorkgroup",
      [](Random& random) {
        Act act = Honest(random);
        act.workgroups = static_cast<uint32_t>(Between(random, 2, 9));
        act.shared_bytes = static_cast<uint32_t>(Words(random, 64, 4096));
        act.orders.shared_read = static_cast<int32_t>(random() % (act.shared_bytes / 4));
        act.orders.shared_write = act.orders.shared_read;
        act.orders.first_alone = 1;
        act.says = "reads shared memory that its workgroup has not written";
        return act;
      },
      shared_mended);
  add(
      "WriteBesideSharedMemory",
      [](Random& random) {
        Act act = Honest(random);
        act.shared_bytes = static_cast<uint32_t>(Words(random, 64, 4096));
        const uint64_t place = Words(random, act.shared_bytes, act.shared_bytes + kNear - 4);
        act.orders.shared_write = static_cast<int32_t>(place / 4);
        act.says = fmt::format("writes bytes [{}, {}) of its shared memory of {} bytes", place,
                               place + 4, act.shared_bytes);
        return act;
      },
      shared_mended);
  add(
      "WriteFarFromSharedMemory",
      [](Random& random) {
        Act act = Honest(random);
        act.shared_bytes = 64;
        act.orders.shared_write = static_cast<int32_t>(Between(random, kFar, 100 * kFar));
        act.says = fmt::format("writes byte {} of its shared memory of 64 bytes",
                               Signed(4) * act.orders.shared_write);
        return act;
      },
      shared_mended);
  add(
      "ReadBehindTheConstants",
      [](Random& random) {
        Act act = Honest(random);
        act.orders.behind_constants = static_cast<uint32_t>(Words(random, 4, kNear));
        act.says = fmt::format("reads beside its {} bytes of constants", sizeof(Orders));
        return act;
      },
      [](Act act) {
        act.orders.behind_constants = 0;
        act.says.clear();
        return act;
      });
  add(
      "WorkgroupsThatMeet",
      [](Random& random) {
        Act act = Honest(random);
        act.out.access = Access::kReadWrite;
        act.orders.race = 1;
        act.orders.words = 1;
        act.workgroups = static_cast<uint32_t>(Between(random, 2, 9));
        act.says = "gives another result when its workgroups run in the reverse order";
        return act;
      },
      [](Act act) {
        act.workgroups = 1;
        act.says.clear();
        return act;
      });
  return lies;
}

class PlantedLies : public ::testing::TestWithParam<Lie> {
 protected:
  PlantedLies() : device_(testing::MakeDevice("cpu", {.threads = 1}, {.checked = true})) {
    EXPECT_THAT(device_->kernels().Add({"obey", {}, 2, sizeof(Orders), "d", kObeyCodes}),
                Succeeds());
    session_ = device_->CreateSession().value();
  }

  // Nothing that is copied equals what it replaces, in any byte.
  void Fill(const Buffer& buffer, Random& random, std::byte mark) {
    std::vector<std::byte> bytes(buffer.size_bytes());
    for (std::byte& value : bytes) value = static_cast<std::byte>(random() & 0x3F) | mark;
    ASSERT_THAT(device_->Write(buffer.All(), bytes), Succeeds());
  }
  std::vector<std::byte> Contents(const Buffer& buffer) {
    std::vector<std::byte> bytes(buffer.size_bytes());
    EXPECT_THAT(device_->Read(buffer.All(), bytes), Succeeds());
    return bytes;
  }

  Status Run(const Act& act, const Buffer& in, const Buffer& out) {
    const auto view = [](const Buffer& buffer, ByteRange range) {
      return testing::View(buffer, range.begin, range.size());
    };
    const auto* constants = reinterpret_cast<const std::byte*>(&act.orders);
    const testing::TestDispatch dispatch(
        testing::Kernel(*device_, "obey"),
        {{view(in, act.in.range), act.in.access}, {view(out, act.out.range), act.out.access}},
        act.workgroups, {constants, constants + sizeof(Orders)}, act.shared_bytes);
    ASSAY_TRY(session_->Dispatch(dispatch.get()));
    ASSAY_TRY(session_->Commit());
    return session_->Wait();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
};

TEST_P(PlantedLies, E6_AreCaughtEveryTimeAndTheirTwinsNever) {
  Random random(2026);
  int caught = 0;
  int accused = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    SCOPED_TRACE(trial);
    const Act lie = GetParam().tell(random);
    const Act twin = GetParam().mend(lie);
    const Buffer in = testing::MakeBuffer(*device_, lie.in.size, "in");
    const Buffer out = testing::MakeBuffer(*device_, lie.out.size, "out");
    Fill(in, random, std::byte{0x40});
    Fill(out, random, std::byte{0x80});
    const std::vector<std::byte> before = Contents(out);
    const Status found = Run(lie, in, out);
    EXPECT_THAT(found, FailsWith(ErrorCode::kInvalidArgument, lie.says));
    EXPECT_THAT(found, FailsWith(ErrorCode::kInvalidArgument,
                                 fmt::format("Dispatch 1 of command buffer {}", 2 * trial + 1)));
    caught += found ? 0 : 1;
    EXPECT_EQ(Contents(out), before) << "a lie must do no harm";
    const Status honest = Run(twin, in, out);
    EXPECT_THAT(honest, Succeeds());
    accused += honest ? 0 : 1;
    EXPECT_NE(Contents(out), before);
  }
  EXPECT_EQ(caught, kTrials);
  EXPECT_EQ(accused, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedLies, ::testing::ValuesIn(Lies()),
                         [](const auto& tested) { return tested.param.name; });

// --- Lies of the host, which the front end sees

// What the program does with a buffer on a checked device, wrongly or as it should.
struct HostLie {
  std::string name;
  // Returns the error that tells; `wrong` false: the twin, which has none.
  std::function<Status(Device& device, Buffer buffer, bool wrong)> act;
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string says;
};

Status Bump(Device& device, Session& session, const BufferView& view) {
  return session.Dispatch(testing::Bump(device, view).get());
}

std::vector<HostLie> HostLies() {
  return {
      {"DoubleRelease",
       [](Device&, Buffer buffer, bool wrong) -> Status {
         Buffer other = buffer;
         ASSAY_TRY(buffer.Release());
         return wrong ? other.Release() : Status();
       },
       ErrorCode::kInvalidArgument, "released before"},
      {"UseAfterRelease",
       [](Device& device, Buffer buffer, bool wrong) -> Status {
         const auto session = device.CreateSession().value();
         const BufferView view = buffer.All();
         if (wrong) ASSAY_TRY(buffer.Release());
         return Bump(device, *session, view);
       },
       ErrorCode::kInvalidArgument, "used after its release"},
      {"ReleaseInFlight",
       [](Device& device, Buffer buffer, bool wrong) -> Status {
         const auto session = device.CreateSession().value();
         ASSAY_TRY(Bump(device, *session, buffer.All()));
         ASSAY_TRY(session->Commit());
         if (!wrong) ASSAY_TRY(session->Wait());
         return buffer.Release();
       },
       ErrorCode::kCommandBuffer, "cannot be released while"},
      {"DroppedInFlight",
       [](Device& device, Buffer buffer, bool wrong) -> Status {
         const auto session = device.CreateSession().value();
         ASSAY_TRY(Bump(device, *session, buffer.All()));
         ASSAY_TRY(session->Commit());
         if (wrong) buffer = Buffer();
         return session->Wait();
       },
       ErrorCode::kCommandBuffer, "The last handle of buffer \"lent\""},
      {"OfAnotherDevice",
       [](Device& device, const Buffer& buffer, bool wrong) -> Status {
         const auto other = testing::MakeDevice("cpu", {.threads = 1}, {.checked = true});
         const auto session = (wrong ? *other : device).CreateSession().value();
         return Bump(wrong ? *other : device, *session, buffer.All());
       },
       ErrorCode::kInvalidArgument, "of another device"},
  };
}

class PlantedHostLies : public ::testing::TestWithParam<HostLie> {};

TEST_P(PlantedHostLies, E11_AreCaughtEveryTimeAndTheirTwinsNever) {
  Random random(7);
  for (int trial = 0; trial < kTrials; ++trial) {
    const uint64_t size = Words(random, 4, 1 << 16);
    for (const bool wrong : {true, false}) {
      const auto device = testing::MakeDevice("cpu", {.threads = 1}, {.checked = true});
      Buffer buffer = testing::MakeBuffer(*device, size, "lent");
      const Status status = GetParam().act(*device, std::move(buffer), wrong);
      if (wrong) {
        EXPECT_THAT(status, FailsWith(GetParam().code, GetParam().says));
      } else {
        EXPECT_THAT(status, Succeeds());
      }
      EXPECT_EQ(device->live_buffers(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedHostLies, ::testing::ValuesIn(HostLies()),
                         [](const auto& tested) { return tested.param.name; });

// A pointer kept from a mapping outlives the buffer; the memory waits, and somebody writes to it.
TEST(PlantedPoison, E11_AWriteToARecycledBufferIsCaughtEveryTimeAndFreshOnesAreZero) {
  Random random(8);
  for (int trial = 0; trial < kTrials; ++trial) {
    const uint64_t size = Words(random, 4, 1 << 16);
    const uint64_t place = random() % size;
    for (const bool wrong : {true, false}) {
      const auto device = testing::MakeDevice("cpu", {.threads = 1}, {.checked = true});
      std::byte* kept = nullptr;
      {
        const Buffer ended = testing::MakeBuffer(*device, size, "ended");
        HostMapping mapping = device->Map(ended.All(), Access::kReadWrite).value();
        std::ranges::fill(mapping.bytes(), std::byte{0x11});
        kept = mapping.bytes().data();
      }
      EXPECT_EQ(kept[place], std::byte{0xA5}) << "what waits for reuse holds poison";
      if (wrong) kept[place] = std::byte{0x11};
      const auto next = device->CreateBuffer({.size_bytes = size, .label = "next", .digest = {}});
      if (wrong) {
        EXPECT_THAT(next,
                    FailsWith(ErrorCode::kDevice,
                              fmt::format("Byte {} of buffer \"ended\" was written after", place)));
        continue;
      }
      ASSERT_THAT(next, Succeeds());
      std::vector<std::byte> bytes(size, std::byte{1});
      ASSERT_THAT(device->Read(next->All(), bytes), Succeeds());
      EXPECT_EQ(std::ranges::count(bytes, std::byte{0}), static_cast<ptrdiff_t>(size));
    }
  }
}

}  // namespace
}  // namespace assay::gpu
