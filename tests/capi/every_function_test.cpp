// SPDX-License-Identifier: Apache-2.0
// Every exported function with mistakes in its arguments, one at a time: it answers with a status and a text that names
// the function, and leaves alone what it was given.
#include "every_function.hpp"

namespace {

using namespace client;

// Arguments that look right: descriptors of small tensors and layers, and memory.
class Stock {
 public:
  enum State { created, set, huge };  // of its descriptors; huge: sizes that no memory has
  explicit Stock(State state) {
    tensor_ = make(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
    channels_ = make(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, "channels");
    filter_ = make(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
    convolution_ = make(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);
    activation_ = make(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor);
    pooling_ = make(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor);
    lrn_ = make(cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor);
    reduce_ = make(cudnnCreateReduceTensorDescriptor, cudnnDestroyReduceTensorDescriptor);
    op_ = make(cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor);
    transform_ = make(cudnnCreateTensorTransformDescriptor, cudnnDestroyTensorTransformDescriptor);
    dropout_ = make(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
    transformer_ = make(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor);
    rnn_ = make(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor);
    rnn_data_ = make(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor);
    sequence_ = make(cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor);
    attention_ = make(cudnnCreateAttnDescriptor, cudnnDestroyAttnDescriptor);
    ctc_ = make(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor);
    make_fused_ops();
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &backend_);
    held_.emplace_back(backend_, [](void* d) { cudnnBackendDestroyDescriptor(d); });
    if (state != created) set_all();
    if (state == huge) set_huge();
  }

  Value sample(const Parameter& p) {
    switch (p.kind) {
      case Kind::enumerator:
        return {.number = p.type == type_of<cudnnBatchNormMode_t>() || p.type == type_of<cudnnNormMode_t>() ? 1 : 0};
      case Kind::integer:
        return {.number = p.type == type_of<size_t>() ? int64_t{kBytes} : number(p.name)};
      case Kind::real:
        return {.real = 0.5};
      case Kind::stream:
        return {};
      default:
        return {.pointer = pointer(p)};
    }
  }
  bool has_descriptor(const Parameter& p) const {
    return p.type == type_of<cudnnHandle_t>() || by_type_.contains({p.type, ""});
  }
  // Whether memory is as it was handed out.
  bool untouched() const {
    for (const Block& b : blocks_)
      for (const auto& word : b.words)
        if (word != b.fill) return false;
    return true;
  }

 private:
  static constexpr int kBytes = 8192;
  struct Block {
    std::vector<uint64_t> words;
    uint64_t fill;
  };

  template <class D>
  D make(cudnnStatus_t (*create)(D*), cudnnStatus_t (*destroy)(D), const std::string& name = "") {
    D d = nullptr;
    EXPECT_OK(create(&d));
    held_.emplace_back(d, [destroy](D p) { destroy(p); });
    by_type_[{type_of<D>(), name}] = d;
    return d;
  }
  template <class D>
  void make_fused(cudnnStatus_t (*create)(D*, cudnnFusedOps_t), cudnnStatus_t (*destroy)(D)) {
    D d = nullptr;
    EXPECT_OK(create(&d, CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS));
    held_.emplace_back(d, [destroy](D p) { destroy(p); });
    by_type_[{type_of<D>(), ""}] = d;
  }
  void make_fused_ops() {
    make_fused(cudnnCreateFusedOpsConstParamPack, cudnnDestroyFusedOpsConstParamPack);
    make_fused(cudnnCreateFusedOpsVariantParamPack, cudnnDestroyFusedOpsVariantParamPack);
    make_fused(cudnnCreateFusedOpsPlan, cudnnDestroyFusedOpsPlan);
  }

  void set_all() {
    EXPECT_OK(cudnnSetTensor4dDescriptor(tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 3, 3));
    EXPECT_OK(cudnnSetTensor4dDescriptor(channels_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1));
    EXPECT_OK(cudnnSetFilter4dDescriptor(filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 4, 1, 1));
    EXPECT_OK(cudnnSetConvolution2dDescriptor(convolution_, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
    EXPECT_OK(cudnnSetActivationDescriptor(activation_, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 1));
    EXPECT_OK(cudnnSetPooling2dDescriptor(pooling_, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 1, 1, 0, 0, 1, 1));
    EXPECT_OK(cudnnSetLRNDescriptor(lrn_, 3, 1e-4, 0.75, 2));
    EXPECT_OK(cudnnSetReduceTensorDescriptor(reduce_, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                             CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
    EXPECT_OK(cudnnSetOpTensorDescriptor(op_, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
    EXPECT_OK(cudnnSetTensorTransformDescriptor(transform_, 4, CUDNN_TENSOR_NCHW, nullptr, nullptr, nullptr,
                                                CUDNN_TRANSFORM_FOLD));
    EXPECT_OK(cudnnSetDropoutDescriptor(dropout_, handle(), 0, nullptr, 0, 1));
    int sizes[] = {2, 4, 3, 3};
    EXPECT_OK(cudnnSetSpatialTransformerNdDescriptor(transformer_, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4, sizes));
    EXPECT_OK(cudnnSetRNNDescriptor_v8(rnn_, CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_RELU, CUDNN_RNN_DOUBLE_BIAS,
                                       CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                       CUDNN_DEFAULT_MATH, 4, 4, 4, 1, nullptr, 0));
    int lengths[] = {1, 1};
    EXPECT_OK(cudnnSetRNNDataDescriptor(rnn_data_, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 1, 2, 4,
                                        lengths, nullptr));
    cudnnSeqDataAxis_t axes[] = {CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                 CUDNN_SEQDATA_VECT_DIM};
    int extents[] = {1, 2, 1, 4};
    EXPECT_OK(cudnnSetSeqDataDescriptor(sequence_, CUDNN_DATA_FLOAT, 4, extents, axes, 2, lengths, nullptr));
    EXPECT_OK(cudnnSetAttnDescriptor(attention_, CUDNN_ATTN_QUERYMAP_ALL_TO_ONE, 1, 1, CUDNN_DATA_FLOAT,
                                     CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, nullptr, nullptr, 4, 4, 4, 4, 4, 4, 4, 1, 1,
                                     2, 1));
    EXPECT_OK(cudnnSetCTCLossDescriptor(ctc_, CUDNN_DATA_FLOAT));
  }

  void set_huge() {
    EXPECT_OK(cudnnSetTensor4dDescriptor(tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1 << 20, 4, 1 << 15, 1 << 15));
    int lengths[] = {1 << 30, 1 << 30};
    EXPECT_OK(cudnnSetRNNDataDescriptor(rnn_data_, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 1 << 30,
                                        2, 4, lengths, nullptr));
  }

  static int64_t number(const std::string& name) {
    static const std::map<std::string, int64_t> kNumbers = {
        {"nbDims", 4},      {"nbDimsRequested", 4}, {"nDims", 4},    {"kernelSize", 2},     {"kernelSizeProj", 2},
        {"pseudoLayer", 0}, {"linLayerID", 0},      {"currIdx", -1}, {"kernelSizeMixer", 2}};
    auto at = kNumbers.find(name);
    return at == kNumbers.end() ? 1 : at->second;
  }

  void* pointer(const Parameter& p) {
    if (p.type == type_of<cudnnHandle_t>()) return handle();
    if (p.type == type_of<cudnnCallback_t>()) return reinterpret_cast<void*>(&ignore);
    // Descriptors of the graph interface are pointers to void.
    for (const char* name : {"descriptor", "executionPlan", "variantPack"})
      if (p.type == type_of<void>() && p.name == name) return backend_;
    bool of_channels = p.name.find("Bias") != std::string::npos || p.name.find("bias") != std::string::npos ||
                       p.name.find("Mean") != std::string::npos || p.name.find("bnDesc") != std::string::npos ||
                       p.name.find("Norm") != std::string::npos;
    for (const char* name : {of_channels ? "channels" : "", ""})
      if (auto at = by_type_.find({p.type, name}); at != by_type_.end()) return at->second;
    if (p.type == type_of<cudnnTensorDescriptor_t*>()) return block(reinterpret_cast<uint64_t>(tensor_));
    if (p.type == type_of<int>()) return block(0x0000000100000001);
    if (p.type == type_of<void>()) return block(0x3f8000003f800000);  // twice 1.0F
    return block(0);
  }
  void* block(uint64_t fill) {
    blocks_.push_back({std::vector<uint64_t>(kBytes / sizeof fill, fill), fill});
    return blocks_.back().words.data();
  }
  static void ignore(cudnnSeverity_t, void*, const cudnnDebug_t*, const char*) {}
  static cudnnHandle_t handle() {
    static Handle h;
    return h;
  }

  std::vector<std::shared_ptr<void>> held_;
  std::map<std::pair<std::type_index, std::string>, void*> by_type_;
  std::vector<Block> blocks_;
  cudnnTensorDescriptor_t tensor_, channels_;
  cudnnFilterDescriptor_t filter_;
  cudnnConvolutionDescriptor_t convolution_;
  cudnnActivationDescriptor_t activation_;
  cudnnPoolingDescriptor_t pooling_;
  cudnnLRNDescriptor_t lrn_;
  cudnnReduceTensorDescriptor_t reduce_;
  cudnnOpTensorDescriptor_t op_;
  cudnnTensorTransformDescriptor_t transform_;
  cudnnDropoutDescriptor_t dropout_;
  cudnnSpatialTransformerDescriptor_t transformer_;
  cudnnRNNDescriptor_t rnn_;
  cudnnRNNDataDescriptor_t rnn_data_;
  cudnnSeqDataDescriptor_t sequence_;
  cudnnAttnDescriptor_t attention_;
  cudnnCTCLossDescriptor_t ctc_;
  cudnnBackendDescriptor_t backend_ = nullptr;
};

// An argument that is not like the others.
struct Mistake {
  size_t at;
  Value value;
};

struct Answer {
  cudnnStatus_t status;
  std::string text;
};

struct EveryFunction : testing::Test {
  Functions functions;
  ~EveryFunction() override { cudnnSetCallback(0, nullptr, nullptr); }

  // Failures are told, by the function's own name.
  static Answer call(const Function& f, const std::vector<Value>& values) {
    last_error();
    cudnnStatus_t status = f.call(values);
    std::string text = last_error();
    if (status != CUDNN_STATUS_SUCCESS) {
      EXPECT_EQ(0u, text.find(f.name + ": ")) << f.name << ": " << status << ", '" << text << "'";
    }
    return {status, text};
  }
  // A failure leaves the program's memory alone.
  static Answer call(const Function& f, Stock& stock, const std::vector<Mistake>& mistakes) {
    std::vector<Value> values;
    for (const Parameter& p : f.parameters) values.push_back(stock.sample(p));
    for (const Mistake& m : mistakes) values[m.at] = m.value;
    Answer a = call(f, values);
    if (a.status != CUDNN_STATUS_SUCCESS) {
      EXPECT_TRUE(stock.untouched()) << f.name << " refused its arguments and changed memory: " << a.text;
    }
    return a;
  }
  static Answer call(const Function& f, const std::vector<Mistake>& mistakes = {}) {
    Stock stock(Stock::set);
    return call(f, stock, mistakes);
  }
  // Functions that do not take the stock's own descriptors away.
  template <class F>
  void each(const F& f) {
    for (const Function& function : functions.all())
      if (!function.starts_with("cudnnDestroy") && !function.starts_with("cudnnBackendDestroy")) f(function);
  }
  template <class F>
  void each(Kind kind, const F& f) {
    each([&](const Function& function) {
      for (size_t i = 0; i < function.parameters.size(); ++i)
        if (function.parameters[i].kind == kind) f(function, function.parameters[i], i);
    });
  }
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// What it makes would have no owner.
bool creates(const Function& f) { return f.name.find("Create") != std::string::npos; }

TEST_F(EveryFunction, IsKnown) {
  EXPECT_GE(functions.all().size(), 245u);
  for (const Function& f : functions.all())
    for (const Parameter& p : f.parameters) EXPECT_FALSE(p.name.empty()) << f.name;
}

// The mistakes below say little about functions that would refuse their arguments in any case.
TEST_F(EveryFunction, MostlyTakesTheStock) {
  int taken = 0;
  each([&](const Function& f) {
    if (!creates(f)) taken += call(f).status == CUDNN_STATUS_SUCCESS;
  });
  EXPECT_GT(taken, 160);
}

TEST_F(EveryFunction, RefusesNothingAtAll) {
  for (const Function& f : functions.all()) {
    bool harmless = f.starts_with("cudnnDestroy") || ends_with(f.name, "VersionCheck") || f.name == "cudnnSetCallback";
    cudnnStatus_t status = call(f, std::vector<Value>(f.parameters.size())).status;
    if (f.has_status && !harmless) {
      EXPECT_TRUE(is_bad_param(status)) << f.name << ": " << status;
    }
  }
}

// Whether a null pointer means that something is left out.
bool is_optional(const Function& f, const Parameter& p, const Stock& stock) {
  // Queries may be asked for less than they can tell.
  bool asks = f.starts_with("cudnnGet") || f.starts_with("cudnnRNNGet") || f.starts_with("cudnnQuery");
  if (asks && !stock.has_descriptor(p)) return true;
  bool weights = f.name == "cudnnGetRNNWeightParams" || f.name == "cudnnGetMultiHeadAttnWeights";
  if (weights && p.type == type_of<cudnnTensorDescriptor_t>()) return true;
  // Parts of fused normalisations that BN alone does not have.
  bool norm = f.name.find("Normalization") != std::string::npos;
  for (const char* name : {"activationDesc", "zDesc", "zData", "z", "yDesc", "yData", "dzDesc", "dzData"})
    if (norm && p.name == name) return true;
  static const char* const kOptional[] = {"workSpace",
                                          "workspace",
                                          "reserveSpace",
                                          "states",
                                          "dropoutDesc",
                                          "attnDropoutDesc",
                                          "postDropoutDesc",
                                          "paddingFill",
                                          "foldA",
                                          "padBeforeA",
                                          "padAfterA",
                                          "devSeqLengths",
                                          "hDesc",
                                          "hx",
                                          "residuals",
                                          "indices",
                                          "means",
                                          "dMeans",
                                          "bnBiasData",
                                          "normBiasData",
                                          "derivedNormMeanVarDesc",
                                          "udata",
                                          "fptr",
                                          "param",
                                          "ptr",
                                          "destSizeInBytes"};
  for (const char* name : kOptional)
    if (p.name == name) return true;
  return f.name == "cudnnPoolingBackward" && p.name == "y";  // x tells as much
}

TEST_F(EveryFunction, RefusesNullPointers) {
  each(Kind::pointer, [&](const Function& f, const Parameter& p, size_t at) {
    Stock stock(Stock::set);
    Answer a = call(f, stock, {{at, {}}});
    if (!f.has_status || is_optional(f, p, stock)) return;
    EXPECT_NE(CUDNN_STATUS_SUCCESS, a.status) << f.name << " takes a null pointer as " << p.name;
    if (!creates(f) && call(f).status == CUDNN_STATUS_SUCCESS) {
      EXPECT_NE(std::string::npos, a.text.find("null")) << p.name << ": " << a.text;
    }
  });
}

TEST_F(EveryFunction, SurvivesDescriptorsThatWereNotSet) {
  each([&](const Function& f) {
    Stock stock(Stock::created);
    if (!creates(f)) call(f, stock, {});
  });
}

TEST_F(EveryFunction, RefusesUnknownEnumerators) {
  each(Kind::enumerator, [&](const Function& f, const Parameter& p, size_t at) {
    for (int v : {-1, 999, INT32_MAX}) {
      cudnnStatus_t status = call(f, {{at, {.number = v}}}).status;
      if (f.has_status) {
        EXPECT_NE(CUDNN_STATUS_SUCCESS, status) << f.name << ": " << p.name << " " << v;
      }
    }
  });
}

// Whether a number says how much memory there is: of a number too large the library cannot know that it is.
bool is_extent(const Function& f, const Parameter& p) {
  if (p.type == type_of<size_t>() || p.name == "seqLength") return true;
  return (f.name.find("CausalConv1d") != std::string::npos && !ends_with(f.name, "Sizes")) ||
         (f.name == "cudnnSetRNNDataDescriptor" && p.name == "batchSize");
}

TEST_F(EveryFunction, SurvivesAnyNumber) {
  each(Kind::integer, [&](const Function& f, const Parameter& p, size_t at) {
    for (int64_t v : {INT64_MIN, int64_t{INT32_MIN}, int64_t{-1}, int64_t{0}, int64_t{INT32_MAX}, INT64_MAX})
      if (v == 0 || !is_extent(f, p)) call(f, {{at, {.number = v}}});
  });
  each(Kind::real, [&](const Function& f, const Parameter&, size_t at) {
    for (double v : {-1.0, 0.0, 1e300, std::nan(""), HUGE_VAL}) call(f, {{at, {.real = v}}});
  });
}

// Each argument by the name that the header has; also of calls that are refused, whatever is wrong with them.
TEST_F(EveryFunction, LogsItsArguments) {
  std::vector<std::string> lines;
  auto hear = [](cudnnSeverity_t, void* to, const cudnnDebug_t*, const char* text) {
    for (; *text; text += std::strlen(text) + 1) static_cast<std::vector<std::string>*>(to)->emplace_back(text);
  };
  auto expect_logged = [&](const Function& f, const std::vector<Value>& values) {
    lines.clear();
    ASSERT_OK(cudnnSetCallback(CUDNN_SEV_INFO_EN, &lines, hear));
    f.call(values);
    cudnnSetCallback(0, nullptr, nullptr);
    ASSERT_GT(lines.size(), f.parameters.size()) << f.name;
    EXPECT_EQ(lines[0], "function " + f.name + "() called");
    for (size_t i = 0; i < f.parameters.size(); ++i)
      EXPECT_EQ(lines[i + 1].rfind(f.parameters[i].name + "=", 0), 0U) << f.name << ": " << lines[i + 1];
  };
  each([&](const Function& f) {
    if (!f.has_status || ends_with(f.name, "VersionCheck") || f.name == "cudnnSetCallback") return;
    Stock stock(Stock::set);
    std::vector<Value> values;
    for (const Parameter& p : f.parameters) values.push_back(stock.sample(p));
    expect_logged(f, std::vector<Value>(values.size()));
    if (creates(f)) return;
    expect_logged(f, values);
    for (size_t i = 0; i < values.size(); ++i)
      if (!is_extent(f, f.parameters[i])) values[i].number = INT32_MIN;
    expect_logged(f, values);
  });
}

// All sizes of a descriptor at their limits at once, and queries about tensors of such sizes.
TEST_F(EveryFunction, SurvivesSizesBeyondMemory) {
  each([&](const Function& f) {
    std::vector<Mistake> mistakes;
    for (size_t i = 0; i < f.parameters.size(); ++i)
      if (f.parameters[i].kind == Kind::integer && !is_extent(f, f.parameters[i]) &&
          f.parameters[i].name.find("Dims") == std::string::npos)
        mistakes.push_back({i, {.number = INT32_MAX}});
    if (f.starts_with("cudnnSet")) call(f, mistakes);
    if (f.starts_with("cudnnGet")) {
      Stock stock(Stock::huge);
      call(f, stock, {});
    }
  });
}

}  // namespace
