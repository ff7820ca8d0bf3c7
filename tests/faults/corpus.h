// The fault corpus: every kind of fault that an engine like this one can have, who catches it, and
// its twins (docs/faults.md).
//
// A twin is the same small program twice, once with the fault and once without; the two differ by
// one barrier, one range or one lifetime, or by the one implementation that is at fault.
#ifndef ASSAY_TESTS_FAULTS_CORPUS_H_
#define ASSAY_TESTS_FAULTS_CORPUS_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::faults {

// A part of Assay that catches faults.
enum class Catcher : uint8_t {
  kHazardCheck,  // The hazard checker, on the trace of the program.
  kSchedule,     // An adversarial schedule: the bits differ from those of the recorded order.
  kMutation,     // Barrier mutation: the mutant without the barrier is killed.
  kRuntime,      // The device or the session refuses the call, or reports it in Wait.
  kCheckedMode,  // A checked device.
  kGraph,        // The legality rules of fusing and reordering.
  kBits,         // A test that asks for equal bits, which the engine itself passes.
  kTrace,        // Names in the trace, and the comparer.
  kTraceReader,  // The trace reader refuses the file.
  kFileReader,   // The GGUF reader, the tokenizer or the model's configuration refuses the file.
};
std::string_view CatcherName(Catcher catcher);

struct Kind {
  int number = 0;
  std::string_view name;
  // Each has a twin of this kind. Empty: there is none, and `excluded` says why.
  std::set<Catcher> caught_by;
  std::string_view excluded = {};
};

// What a catcher says of a program; nothing where it finds no fault. `round` counts from 0; a
// program may vary with it what must not matter.
using Run = std::function<std::string(int round)>;

struct Twin {
  int kind = 0;
  Catcher catcher = Catcher::kHazardCheck;
  std::string_view name;
  Run racy;
  Run clean;
  // All that it must say of the racy one, every time.
  std::string finding;
  // The same for the clean one, where nothing would be too little.
  std::string remark = {};
};

// The table of all kinds, in order of their numbers.
std::vector<Kind> AllKinds();
// The twins of all kinds, in no order.
std::vector<Twin> AllTwins();

// The parts of AllTwins().
std::vector<Twin> OrderingTwins();
std::vector<Twin> GraphTwins();
std::vector<Twin> HostTwins();
std::vector<Twin> ViewTwins();
std::vector<Twin> BitsTwins();
std::vector<Twin> LoadingTwins();
std::vector<Twin> FileTwins();

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_CORPUS_H_
