// Steps that are nearly alike are recorded as what they are, whatever the recorder keeps from one
// to the next: held against the same steps, each recorded on a queue of its own, which knows no
// other.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/record.h"
#include "assay/trace.h"

#include "gpu/backend.h"
#include "tests/support/forwarding_backend.h"

namespace assay::record {
namespace {

using gpu::BackendBinding;
using gpu::BackendBuffer;
using gpu::BackendKernel;

// One dispatch or, without a kernel, a barrier. Buffers and kernels by number.
struct Said {
  int kernel = -1;
  Extent3 grid{1, 1, 1};
  uint32_t shared_bytes = 0;
  std::vector<std::byte> constants;
  struct Bound {
    size_t buffer = 0;
    ByteRange range;
    Access access = Access::kRead;
    bool exact = true;
  };
  std::vector<Bound> bound;
  bool refused = false;  // By the inner backend.
};
struct Step {
  std::vector<Said> said;
  // What happens to it: nothing else is recorded than what is committed.
  bool abandoned = false;
  // A buffer ends before it and another one is made, whose address may be the same.
  bool replaces_buffer = false;
};

constexpr size_t kBuffers = 3;
// Of the kernels: so many bindings and constant bytes.
constexpr std::array<size_t, 3> kBindings = {0, 2, 40};
constexpr std::array<size_t, 3> kConstants = {6, 24, 0};

Said AnySaid() {
  Said said;
  said.kernel = *rc::gen::inRange(-1, 3);
  if (said.kernel < 0) return said;
  said.grid.x = *rc::gen::inRange<uint32_t>(1, 3);
  const auto kernel = static_cast<size_t>(said.kernel);
  said.constants.resize(kConstants[kernel]);
  for (size_t i = 0; i < kBindings[kernel]; ++i) {
    said.bound.push_back({*rc::gen::inRange<size_t>(0, kBuffers), {0, 1 + i}});
  }
  return said;
}

// Changes one thing, seldom the shape.
void Change(Said* said) {
  const int field = *rc::gen::inRange(0, 12);
  if (field == 0) *said = AnySaid();
  if (field == 1) said->grid.y += 1;
  if (field == 2) said->shared_bytes += 4;
  if (field >= 3 && field <= 6 && !said->constants.empty()) {
    said->constants[*rc::gen::inRange<size_t>(0, said->constants.size())] ^= std::byte{0x5A};
  }
  if (said->bound.empty()) return;
  Said::Bound& bound = said->bound[*rc::gen::inRange<size_t>(0, said->bound.size())];
  if (field == 7) bound.buffer = (bound.buffer + 1) % kBuffers;
  if (field == 8) bound.access = Access::kReadWrite;
  if (field == 9) bound.exact = !bound.exact;
  if (field >= 10) bound.range.end = *rc::gen::inRange<uint64_t>(bound.range.begin, 2000);
}

// Buffers in the order in which they were made, as the inner backend knows them; and what it is
// told to bind.
class Inner final : public assay::testing::ForwardingBackend {
 public:
  Inner() : ForwardingBackend(gpu::MakeBackend("null").value()) {}

  Result<std::unique_ptr<BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    auto buffer = ForwardingBackend::CreateBuffer(desc);
    made_.push_back(buffer->get());
    return buffer;
  }
  Status OnDispatch(gpu::BackendCommandBuffer& inner,
                    const gpu::BackendDispatch& dispatch) override {
    bound_.clear();
    for (const BackendBinding& binding : dispatch.bindings) bound_.push_back(binding.buffer);
    if (refuses_) return Fail(ErrorCode::kDevice, "", "Refused by the test.");
    return inner.Dispatch(dispatch);
  }
  void set_refuses(bool refuses) { refuses_ = refuses; }
  const std::vector<BackendBuffer*>& made() const { return made_; }
  const std::vector<BackendBuffer*>& bound() const { return bound_; }

 private:
  std::vector<BackendBuffer*> made_;
  std::vector<BackendBuffer*> bound_;
  bool refuses_ = false;
};

// Buffers by the number of Said, and where the inner backend made them.
class Buffers {
 public:
  Buffers(gpu::Backend* backend, const Inner* inner) : backend_(backend), inner_(inner) {
    for (size_t i = 0; i < kBuffers; ++i) Replace(i);
  }
  void Replace(size_t number) {
    buffers_[number].reset();
    buffers_[number] = backend_->CreateBuffer({4096, BufferKind::kOther, "", ""}).value();
    places_[number] = inner_->made().size() - 1;
  }
  // The same until the new one stands where the old one stood; false when that does not happen.
  bool ReplaceInPlace(size_t number) {
    const BackendBuffer* const old = buffers_[number].get();
    std::vector<std::unique_ptr<BackendBuffer>> others;
    for (int tries = 0; tries < 100; ++tries) {
      Replace(number);
      if (buffers_[number].get() == old) return true;
      others.push_back(std::move(buffers_[number]));
    }
    Replace(number);
    return false;
  }
  BackendBuffer* operator[](size_t number) const { return buffers_[number].get(); }
  BackendBuffer* inner(size_t number) const { return inner_->made()[places_[number]]; }

 private:
  gpu::Backend* backend_;
  const Inner* inner_;
  std::array<std::unique_ptr<BackendBuffer>, kBuffers> buffers_;
  std::array<size_t, kBuffers> places_{};
};

std::vector<std::unique_ptr<BackendKernel>> MakeKernels(gpu::Backend* backend) {
  constexpr std::array<std::string_view, 3> kNames = {"zero", "one", "two"};
  std::vector<std::unique_ptr<BackendKernel>> kernels;
  for (size_t i = 0; i < kNames.size(); ++i) {
    kernels.push_back(backend
                          ->CreateKernel({.name = kNames[i],
                                          .workgroup = {1, 1, 1},
                                          .binding_count = static_cast<uint32_t>(kBindings[i]),
                                          .constant_bytes = static_cast<uint32_t>(kConstants[i]),
                                          .source_digest = "0",
                                          .code = {}})
                          .value());
  }
  return kernels;
}

void Say(const Said& said, const Buffers& buffers, BackendKernel* kernel, Inner* inner,
         gpu::BackendCommandBuffer* commands) {
  std::vector<BackendBinding> bindings;
  std::vector<BackendBuffer*> expected;
  for (const Said::Bound& bound : said.bound) {
    bindings.push_back({buffers[bound.buffer], bound.range, bound.access, bound.exact});
    expected.push_back(buffers.inner(bound.buffer));
  }
  inner->set_refuses(said.refused);
  const Status status =
      commands->Dispatch({kernel, bindings, said.constants, said.grid, said.shared_bytes});
  EXPECT_EQ(status.has_value(), !said.refused);
  EXPECT_EQ(inner->bound(), expected);
}

// The trace of `steps`, all on one queue or each on its own.
std::string Record(const std::vector<Step>& steps, bool queue_a_step) {
  std::string text;
  const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    auto owned = std::make_unique<Inner>();
    Inner* const inner = owned.get();
    const auto backend = MakeRecordingBackend(std::move(owned), writer.get());
    Buffers buffers(backend.get(), inner);
    const auto kernels = MakeKernels(backend.get());
    auto queue = backend->CreateQueue().value();
    for (const Step& step : steps) {
      if (queue_a_step) queue = backend->CreateQueue().value();
      if (step.replaces_buffer) buffers.Replace(0);
      auto commands = queue->Begin().value();
      for (const Said& said : step.said) {
        if (said.kernel < 0) {
          RC_ASSERT(commands->Barrier().has_value());
        } else {
          Say(said, buffers, kernels[static_cast<size_t>(said.kernel)].get(), inner,
              commands.get());
        }
      }
      RC_ASSERT(commands->EndEncoding().has_value());
      if (!step.abandoned) RC_ASSERT(queue->Commit(std::move(commands)).has_value());
    }
  }
  RC_ASSERT(writer->Close().has_value());
  return text;
}

RC_GTEST_PROP(EncodedSteps, T1_AreRecordedAsIfEachStoodAlone, ()) {
  Step step;
  step.said = *rc::gen::container<std::vector<Said>>(rc::gen::exec(AnySaid));
  std::vector<Step> steps;
  const int count = *rc::gen::inRange(1, 40);
  size_t dispatches = 0;
  for (int i = 0; i < count; ++i) {
    for (Said& said : step.said) {
      if (said.kernel >= 0 && *rc::gen::inRange(0, 4) == 0) Change(&said);
      said.refused = false;
    }
    if (!step.said.empty() && *rc::gen::inRange(0, 10) == 0) {
      Said& said = step.said[*rc::gen::inRange<size_t>(0, step.said.size())];
      said.refused = said.kernel >= 0;
    }
    const int other = *rc::gen::inRange(0, 20);
    if (other == 0) step.said.push_back(AnySaid());
    if (other == 1 && !step.said.empty()) step.said.pop_back();
    step.abandoned = *rc::gen::inRange(0, 3) == 0;
    step.replaces_buffer = *rc::gen::inRange(0, 15) == 0;
    steps.push_back(step);
    if (step.abandoned) continue;
    dispatches += static_cast<size_t>(std::ranges::count_if(
        step.said, [](const Said& said) { return said.kernel >= 0 && !said.refused; }));
  }
  const std::string text = Record(steps, false);
  RC_ASSERT(text == Record(steps, true));
  size_t lines = 0;
  for (size_t at = 0; (at = text.find("\ndispatch ", at)) != std::string::npos; ++at) ++lines;
  RC_ASSERT(lines == dispatches);
}

TEST(EncodedSteps, T3_ABufferAtAnEarlierOnesAddressIsAnother) {
  std::string text;
  const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    auto owned = std::make_unique<Inner>();
    Inner* const inner = owned.get();
    const auto backend = MakeRecordingBackend(std::move(owned), writer.get());
    Buffers buffers(backend.get(), inner);
    const auto kernels = MakeKernels(backend.get());
    const auto queue = backend->CreateQueue().value();
    Said said;
    said.kernel = 1;
    said.constants.resize(kConstants[1]);
    said.bound = {{0, {0, 4}}, {1, {0, 4}}};
    for (int step = 0; step < 3; ++step) {
      auto commands = queue->Begin().value();
      Say(said, buffers, kernels[1].get(), inner, commands.get());
      ASSERT_TRUE(commands->EndEncoding());
      ASSERT_TRUE(queue->Commit(std::move(commands)));
      const bool in_place = buffers.ReplaceInPlace(0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
      // Their allocators keep an address to themselves for long.
      (void)in_place;
#else
      ASSERT_TRUE(in_place);
#endif
    }
  }
  ASSERT_TRUE(writer->Close());
}

}  // namespace
}  // namespace assay::record
