#include "kernels/ops_cases.h"

#include <array>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "gpu/backend.h"
#include "kernels/activations.h"

namespace assay::kernels::testing {
namespace {

constexpr std::array kWeightTypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0,
                                     DType::kQ4_0};
constexpr std::array kFormats = {ActivationFormat::kF32, ActivationFormat::kQ8};

std::string Named(std::string_view op, std::string_view form) {
  return std::string(op) + "_" + std::string(form);
}
std::string_view FormatName(ActivationFormat format) {
  return format == ActivationFormat::kQ8 ? "Q8" : "F32";
}
Matrix AsMatrix(const Activations& x) { return {x.view, DType::kF32, x.rows, x.cols}; }

void AddWeightCases(DType type, std::vector<OpCase>& cases) {
  const std::string_view name = DTypeName(type);
  cases.push_back({Named("Embedding", name), [type](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.Embedding(session, o.Weights(type, 9, 64), o.Values(o.Ids(5, 9)),
                                          AsMatrix(o.Output(ActivationFormat::kF32, 5, 64)));
                   }});
  struct Product {
    std::string_view form;
    uint32_t rows, cols, tokens;
  };
  // The last one is of many tiles (matmul_cooperative).
  for (const Product& p : {Product{"_one", 83, 96, 1}, Product{"_many", 83, 96, 6},
                           Product{"_batch", 83, 96, 20}, Product{"_tiles", 8065, 32, 16}}) {
    cases.push_back({Named("MatMul", name) + std::string(p.form),
                     [type, p](Ops& ops, gpu::Session& session, Operands& o) {
                       return ops.MatMul(
                           session, o.Weights(type, p.rows, p.cols),
                           o.Input(ops.InputFormat(type), p.tokens, p.cols),
                           AsMatrix(o.Output(ActivationFormat::kF32, p.tokens, p.rows)));
                     }});
  }
  for (const Product& p : {Product{"_one", 35, 64, 1}, Product{"", 35, 64, 2},
                           Product{"_batch", 35, 64, 20}, Product{"_tiles", 8065, 32, 16}}) {
    cases.push_back({Named("MatMulResidual", name) + std::string(p.form),
                     [type, p](Ops& ops, gpu::Session& session, Operands& o) {
                       return ops.MatMul(
                           session, o.Weights(type, p.rows, p.cols),
                           o.Input(ops.InputFormat(type), p.tokens, p.cols),
                           AsMatrix(o.Output(ActivationFormat::kF32, p.tokens, p.rows)),
                           o.F32(p.tokens, p.rows).view);
                     }});
  }
  cases.push_back(
      {Named("MatMulInPlace", name), [type](Ops& ops, gpu::Session& session, Operands& o) {
         const Matrix out = o.F32(2, 35);
         return ops.MatMul(session, o.Weights(type, 35, 64), o.Input(ops.InputFormat(type), 2, 64),
                           out, out.view);
       }});
  for (const auto& [form, tokens] : {std::pair{"_one", 1u}, {"_many", 7u}, {"_batch", 40u}}) {
    cases.push_back({Named("MatMulByExpert", name) + form,
                     [type, tokens = tokens](Ops& ops, gpu::Session& session, Operands& o) {
                       return ops.MatMulByExpert(
                           session, o.Weights(type, 8 * 24, 64), 8, o.Values(o.Ids(tokens * 2, 8)),
                           o.Input(ops.InputFormat(type), tokens, 64),
                           AsMatrix(o.Output(ActivationFormat::kF32, tokens * 2, 24)));
                     }});
  }
}

void AddFusedWeightCases(DType type, std::vector<OpCase>& cases) {
  const std::string_view name = DTypeName(type);
  for (const ActivationFormat format : kFormats) {
    const std::string form = std::string(name) + "_" + std::string(FormatName(format));
    cases.push_back({Named("GateUp", form), [=](Ops& ops, gpu::Session& session, Operands& o) {
                       return ops.GateUp(session, o.Weights(type, 96, 64), o.Weights(type, 96, 64),
                                         o.Input(ops.InputFormat(type), 2, 64),
                                         o.Output(format, 2, 96));
                     }});
    cases.push_back(
        {Named("GateUpByExpert", form), [=](Ops& ops, gpu::Session& session, Operands& o) {
           return ops.GateUpByExpert(session, o.Weights(type, 8 * 32, 64),
                                     o.Weights(type, 8 * 32, 64), 8, o.Values(o.Ids(4, 9)),
                                     o.Input(ops.InputFormat(type), 2, 64),
                                     o.Output(format, 4, 32));
         }});
  }
  for (const bool in_place : {false, true}) {
    cases.push_back({Named("DownByExpertSum", name) + (in_place ? "_in_place" : ""),
                     [=](Ops& ops, gpu::Session& session, Operands& o) {
                       const Matrix out = o.F32(2, 24);
                       return ops.DownByExpertSum(
                           session, o.Weights(type, 8 * 24, 64), 8, o.Values(o.Ids(6, 9)),
                           o.Input(ops.InputFormat(type), 6, 64), o.F32(2, 3).view, out,
                           in_place ? out.view : o.F32(2, 24).view);
                     }});
  }
}

void AddCacheCases(DType type, std::vector<OpCase>& cases) {
  const std::string_view name = DTypeName(type);
  cases.push_back({Named("KvAppend", name), [type](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.KvAppend(session, o.F32(3, 40), o.F32(3, 40), 5,
                                         o.Cache(type, 12, 40), o.Cache(type, 12, 40));
                   }});
  cases.push_back(
      {Named("HeadNormRopeAppend", name), [type](Ops& ops, gpu::Session& session, Operands& o) {
         return ops.HeadNormRopeAppend(session, o.F32(3, 48), 24, o.F32(1, 24).view, 1e-6f, 5, 1e4f,
                                       o.F32(3, 48), o.Cache(type, 12, 48), o.Cache(type, 12, 48));
       }});
  for (const ActivationFormat format : kFormats) {
    for (const uint32_t tokens : {1u, 5u}) {
      cases.push_back({Named("Attention", name) + "_" + std::string(FormatName(format)) +
                           (tokens == 1 ? "_one" : "_many"),
                       [=](Ops& ops, gpu::Session& session, Operands& o) {
                         return ops.Attention(session, o.F32(tokens, 4 * 32), o.Cache(type, 64, 64),
                                              o.Cache(type, 64, 64), 32, 38, 0.2f,
                                              o.Output(format, tokens, 4 * 32));
                       }});
    }
  }
}

// Positions shared by several workgroups, for as many query heads over a kv head as there are
// forms.
void AddSharedAttentionCases(DType type, std::vector<OpCase>& cases) {
  for (const uint32_t fan : {2u, 4u, 8u}) {
    for (const uint32_t tokens : {1u, 3u}) {
      cases.push_back({Named("AttentionShared", DTypeName(type)) + "_" + std::to_string(fan) +
                           (tokens == 1 ? "_one" : "_many"),
                       [=](Ops& ops, gpu::Session& session, Operands& o) {
                         const uint32_t heads = 2 * fan, position = tokens == 1 ? 300 : 1022;
                         return ops.Attention(
                             session, o.F32(tokens, heads * 24),
                             o.Cache(type, position + tokens, 48),
                             o.Cache(type, position + tokens, 48), 24, position, 0.2f,
                             o.Output(ActivationFormat::kF32, tokens, heads * 24),
                             o.Room(ops.RoomForAttention(tokens, heads, 2, 24, position + tokens)));
                       }});
    }
  }
}

void AddFormatCases(ActivationFormat format, std::vector<OpCase>& cases) {
  const std::string_view name = FormatName(format);
  cases.push_back({Named("RmsNorm", name), [=](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.RmsNorm(session, o.F32(3, 96), o.F32(1, 96).view, 1e-6f,
                                        o.Output(format, 3, 96));
                   }});
  cases.push_back({Named("RmsNormPlain", name), [=](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.RmsNorm(session, o.F32(3, 96), {}, 1e-6f, o.Output(format, 3, 96));
                   }});
  cases.push_back({Named("Quantize", name), [=](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.Quantize(session, o.F32(3, 96), o.Output(format, 3, 96));
                   }});
  cases.push_back({Named("SiluMul", name), [=](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.SiluMul(session, o.F32(3, 2080), o.F32(3, 2080),
                                        o.Output(format, 3, 2080));
                   }});
}

void AddOtherCases(std::vector<OpCase>& cases) {
  cases.push_back({"HeadNormRope", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.HeadNormRope(session, o.F32(4, 3 * 24), 24, o.F32(1, 24).view,
                                             1e-6f, 17, 1e4f);
                   }});
  cases.push_back({"HeadNormRopePlain", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.HeadNormRope(session, o.F32(4, 3 * 24), 24, {}, 1e-6f, 17, 1e4f);
                   }});
  cases.push_back({"HeadNorm", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.HeadNorm(session, o.F32(4, 3 * 24), 24, o.F32(1, 24).view, 1e-6f);
                   }});
  cases.push_back({"HeadNormPlain", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.HeadNorm(session, o.F32(4, 3 * 24), 24, {}, 1e-6f);
                   }});
  cases.push_back({"Rope", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.Rope(session, o.F32(4, 3 * 24), 24, 17, 1e4f);
                   }});
  cases.push_back({"Add", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.Add(session, o.F32(3, 5001), o.F32(3, 5001),
                                    AsMatrix(o.Output(ActivationFormat::kF32, 3, 5001)));
                   }});
  cases.push_back({"MulInPlace", [](Ops& ops, gpu::Session& session, Operands& o) {
                     const Matrix a = o.F32(3, 5001);
                     return ops.Mul(session, a, o.F32(3, 5001), a);
                   }});
  cases.push_back({"Route", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.Route(session, o.F32(5, 20), 3, true, o.Garbage(5 * 3 * 4),
                                      o.Garbage(5 * 3 * 4));
                   }});
  cases.push_back({"NormRoute", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.NormRoute(session, o.F32(3, 96), o.F32(1, 96).view, 1e-6f,
                                          o.F32(20, 96),
                                          AsMatrix(o.Output(ActivationFormat::kF32, 3, 96)), 4,
                                          true, o.Garbage(3 * 4 * 4), o.Garbage(3 * 4 * 4));
                   }});
  cases.push_back({"WeightedSum", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.WeightedSum(session, o.F32(6, 1100), o.F32(3, 2).view, 2,
                                            AsMatrix(o.Output(ActivationFormat::kF32, 3, 1100)));
                   }});
  cases.push_back({"WeightedSumInPlace", [](Ops& ops, gpu::Session& session, Operands& o) {
                     const Matrix out = o.F32(3, 1100);
                     return ops.WeightedSum(session, o.F32(6, 1100), o.F32(3, 2).view, 2, out,
                                            out.view);
                   }});
  cases.push_back({"ArgMax", [](Ops& ops, gpu::Session& session, Operands& o) {
                     return ops.ArgMax(session, o.F32(3, 2100), o.Garbage(3 * 4));
                   }});
}

}  // namespace

gpu::BufferView Operands::Bytes(const std::vector<std::byte>& bytes, uint64_t offset) {
  const uint64_t begin = kMargin + offset;
  std::vector<std::byte> content(begin + bytes.size() + kMargin, std::byte{0xFF});
  std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<ptrdiff_t>(begin));
  const auto buffer = device_->CreateBuffer({content.size(), BufferKind::kOther, "operand", ""});
  EXPECT_TRUE(buffer.has_value());
  EXPECT_TRUE(device_->Write(buffer->All(), content).has_value());
  buffers_.push_back(*buffer);
  return buffer->View(begin, bytes.size()).value();
}

Matrix Operands::F32(uint32_t rows, uint32_t cols) {
  return {Values(random_.Values(size_t{rows} * cols)), DType::kF32, rows, cols};
}

Matrix Operands::Weights(DType type, uint32_t rows, uint32_t cols) {
  std::vector<std::byte> bytes = RandomWeights(random_, type, rows, cols).bytes;
  if (TargetOf(device_->info().code_format) == Target::kSpirv) {
    PackWeights(type, rows, cols, bytes);
  }
  return {Bytes(bytes, 2), type, rows, cols};
}

Matrix Operands::Cache(DType type, uint32_t rows, uint32_t cols) {
  return {Bytes(RandomWeights(random_, type, rows, cols).bytes), type, rows, cols};
}

Activations Operands::Input(ActivationFormat format, uint32_t rows, uint32_t cols) {
  return {Bytes(RandomActivations(random_, format, rows, cols).bytes), format, rows, cols};
}

Activations Operands::Output(ActivationFormat format, uint32_t rows, uint32_t cols) {
  return {Garbage(ActivationBytes(format, rows, cols)), format, rows, cols};
}

gpu::BufferView Operands::Garbage(uint64_t bytes) {
  return Bytes(std::vector<std::byte>(bytes, std::byte{0xFF}));
}

AttentionRoom Operands::Room(const AttentionRoomBytes& bytes) {
  if (bytes.partials == 0) return {};
  return {Bytes(std::vector<std::byte>(bytes.partials, std::byte{0xFF}), 0),
          Bytes(std::vector<std::byte>(bytes.counters))};
}

std::vector<int32_t> Operands::Ids(uint32_t count, uint32_t limit) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random_.Below(limit));
  return ids;
}

std::vector<OpCase> AllOpCases() {
  std::vector<OpCase> cases;
  for (const DType type : kWeightTypes) AddWeightCases(type, cases);
  for (const DType type : kWeightTypes) AddFusedWeightCases(type, cases);
  for (const DType type : {DType::kF32, DType::kF16}) {
    AddCacheCases(type, cases);
    AddSharedAttentionCases(type, cases);
  }
  for (const ActivationFormat format : kFormats) AddFormatCases(format, cases);
  AddOtherCases(cases);
  return cases;
}

}  // namespace assay::kernels::testing
