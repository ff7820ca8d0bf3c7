// Evidence: the folder that `assay trace` and `assay prove` write and `assay compare` reads. One
// owner for both sides.
//
//   depth-<N>.trace      (or .trace.zst) one trace for each depth
//   ids.json             the token ids generated at each depth; left out where none were
//   kernels.scan         the scan of the program's kernels; left out where none was made
//   manifest.json        what was recorded and the digest of every other file; written last
//
// Manifests of format 1 have no scan and no command, and always have ids; they are read as well.
//
// A folder without a manifest, or whose files are not what its manifest says, is not evidence: the
// recording did not finish or something changed it afterwards.
#ifndef ASSAY_PROVE_EVIDENCE_H_
#define ASSAY_PROVE_EVIDENCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/prove.h"

namespace assay::prove {

// The ids generated from one depth on, in order.
struct IdSequence {
  int64_t depth = 0;
  std::vector<int32_t> ids;
  bool operator==(const IdSequence&) const = default;
};

// The facts of a recording. Nothing of time, place or machine.
struct EvidenceFacts {
  std::string tool_version;
  int trace_version = 0;
  // What recorded it, such as "assay trace"; without what a machine gave it (paths).
  std::string command = {};
  // Flags of the recording by name, those that may not change a trace (threads, loaders) included:
  // a reader sees under which conditions two folders agree.
  std::map<std::string, std::string> command_options;
  std::string model_digest;
  int64_t steps = 0;  // Decode steps recorded at each depth; 0 without ids.
};

struct EvidenceFile {
  std::string name;  // Within the folder.
  uint64_t bytes = 0;
  std::string digest;  // Of the bytes as they lie on disk.
};

struct EvidenceManifest {
  int64_t format = 0;  // Of the manifest that was read.
  EvidenceFacts facts;
  std::vector<int64_t> depths;  // Rising.
  std::vector<EvidenceFile> files;
};

// Writes one folder, whole or not at all. Everything goes into a folder of its own beside the
// target
// (`<folder>.partial-<pid>-<n>`), which Finish() moves to the name in one step; until then what
// stands under the name is untouched. Destruction without Finish() removes the folder beside it, so
// that a failure or Ctrl-C leaves nothing behind. One thread.
//
//   auto writer = EvidenceWriter::Create(folder, /*replace=*/false);
//   ... a TraceWriter on writer->TracePath(0), closed; one on writer->TracePath(600), closed ...
//   ASSAY_TRY(writer->Finish(facts, sequences));
class EvidenceWriter final {
 public:
  // The parent of `folder` must exist. Errors: kInvalidArgument when the folder exists and is not
  // empty, unless `replace`, which takes the place of evidence and of nothing else: the folder must
  // then have a readable manifest and hold no file that is not evidence. kIo.
  static Result<EvidenceWriter> Create(const std::string& folder, bool replace);
  EvidenceWriter(EvidenceWriter&& other) noexcept;
  EvidenceWriter& operator=(EvidenceWriter&&) = delete;
  ~EvidenceWriter();

  // Where to write the trace of `depth`; each depth once. `compressed` adds `.zst`.
  std::string TracePath(int64_t depth, bool compressed = false);
  // Where that trace lies after Finish().
  std::string FinalTracePath(int64_t depth) const;
  // Writes ids.json, unless there are no sequences, and the scan, where there is one; takes the
  // digest of every file, writes the manifest, and moves the folder to its name. Errors: kNotFound
  // when a trace that TracePath() named is not there; as Create() when somebody else filled the
  // folder meanwhile; kIo.
  Status Finish(const EvidenceFacts& facts, std::span<const IdSequence> sequences,
                const std::optional<Scan>& scan = std::nullopt);

 private:
  EvidenceWriter(std::string folder, std::string work_folder, bool replace)
      : folder_(std::move(folder)), work_folder_(std::move(work_folder)), replace_(replace) {}
  Status MoveIntoPlace();

  std::string folder_;
  std::string work_folder_;  // Empty once finished or moved from.
  bool replace_ = false;
  std::map<int64_t, std::string> traces_;  // Depth to file name.
};

// A folder that has been read and found whole.
class EvidenceFolder final {
 public:
  // Checks the manifest, the size and digest of every file, and that there are as many ids at each
  // depth as steps, at least one, where there are ids. Errors: kNotFound when it is no
  // folder or has no manifest, kFormat when something in it is not what the manifest says, kIo.
  static Result<EvidenceFolder> Open(const std::string& folder);

  const std::string& path() const { return folder_; }
  const EvidenceManifest& manifest() const { return manifest_; }
  // Of every depth, or of none.
  const std::vector<IdSequence>& sequences() const { return sequences_; }
  // Of a depth that the manifest lists.
  std::string TracePath(int64_t depth) const;
  // Empty where there is no scan.
  std::string ScanPath() const;

 private:
  EvidenceFolder(std::string folder, EvidenceManifest manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

  std::string folder_;
  EvidenceManifest manifest_;
  std::vector<IdSequence> sequences_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_EVIDENCE_H_
