// SPDX-License-Identifier: Apache-2.0
// Plans: what execute checks, limits and filters, saving and loading, the cache, other sizes, many threads.
#include "planner/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <atomic>
#include <thread>

#include "expect_error.hpp"
#include "graph/text.hpp"
#include "harness/runner.hpp"
#include "planner/explain.hpp"
#include "planner/plan_cache.hpp"

namespace tsr {
namespace {

std::shared_ptr<const Graph> graph(const std::string& text) { return std::make_shared<Graph>(parse_graph(text)); }

// relu(x) + 1 with an intermediate result that takes workspace when it is not fused.
const char* const kTwoSteps = "x@1 = input f32[4]; y@2 = add (relu x) 1; output y";

struct Memory {
  alignas(256) float x[4] = {-1, 2, -3, 4};
  alignas(256) float y[4] = {};
  std::vector<Binding> bindings() { return {{1, x}, {2, y}}; }
};

// Runs with a workspace of the size that the plan asks for.
void execute(const Plan& plan, const std::vector<Binding>& bindings, std::span<const ShapeOverride> sizes = {}) {
  size_t bytes = sizes.empty() ? plan.workspace_bytes() : plan.with_shapes(sizes)->workspace_bytes();
  GuardedBuffer workspace(bytes, 256);
  plan.execute(bindings, workspace.data(), workspace.size(), nullptr, sizes);
  EXPECT_TRUE(workspace.intact());
}

std::shared_ptr<const Plan> two_steps(PlanOptions o = {}) {
  o.fuse = false;
  return make_plan(graph(kTwoSteps), cpu_device(), o);
}

TEST(Plan, Runs) {
  Memory m;
  auto plan = two_steps();
  ASSERT_EQ(plan->steps().size(), 2u);
  ASSERT_GT(plan->workspace_bytes(), 0u);
  execute(*plan, m.bindings());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(m.y[i], std::max(m.x[i], 0.0f) + 1);
}

TEST(Plan, ChecksPointers) {
  Memory m;
  auto plan = two_steps();
  auto run = [&](std::vector<Binding> b) { execute(*plan, b); };
  expect_error([&] { run({{2, m.y}}); }, Status::bad_parameter, {"input 'x' f32[4] has no pointer"});
  expect_error([&] { run({{1, m.x}}); }, Status::bad_parameter, {"output 'y' f32[4] has no pointer"});
  expect_error([&] { run({{1, nullptr}, {2, m.y}}); }, Status::bad_parameter, {"'x'", "no pointer"});
  expect_error([&] { run({{1, m.x}, {2, m.y}, {99, m.y}}); }, Status::bad_parameter, {"unique id 99"});
  expect_error([&] { run({{1, m.x + 1}, {2, m.y}}); }, Status::bad_parameter, {"'x'", "not aligned to the 16 bytes"});
}

TEST(Plan, AlignmentIsAsPromised) {
  auto plan = make_plan(graph("x@1 = input f32[3] align=4; y@2 = relu x; with y align=4; output y"), cpu_device());
  Memory m;
  std::vector<Binding> b = {{1, m.x + 1}, {2, m.y + 1}};
  execute(*plan, b);
  EXPECT_EQ(m.y[1], 2);
  EXPECT_EQ(m.y[2], 0);
}

TEST(Plan, EmptyTensorsNeedNoPointer) {
  auto plan = make_plan(graph("x@1 = input f32[0,3]; y@2 = relu x; output y"), cpu_device());
  EXPECT_NO_THROW(execute(*plan, {}));
}

TEST(Plan, ChecksTheWorkspace) {
  Memory m;
  auto plan = two_steps();
  size_t needed = plan->workspace_bytes();
  GuardedBuffer workspace(needed + 16, 256);
  auto run = [&](void* memory, size_t bytes) { plan->execute(m.bindings(), memory, bytes); };
  EXPECT_NO_THROW(run(workspace.data(), needed));
  EXPECT_NO_THROW(run(workspace.data() + 1, needed));
  expect_error([&] { run(workspace.data() + 1, needed - 1); }, Status::bad_parameter,
               {"workspace has " + std::to_string(needed - 1), "needs " + std::to_string(needed)});
  expect_error([&] { run(nullptr, needed); }, Status::bad_parameter, {"null pointer"});
}

TEST(Plan, WorkspaceLimit) {
  PlanOptions o;
  o.workspace_limit = 0;
  expect_error([&] { two_steps(o); }, Status::not_supported, {"bytes of workspace", "limit is 0"});
  o.workspace_limit = two_steps()->workspace_bytes();
  EXPECT_NO_THROW(two_steps(o));
}

TEST(Plan, AnEngineThatNeedsLessWorkspaceTakesOver) {
  std::string text = "x = input f32[64,256]; y = softmax x; output y";
  auto fast = make_plan(graph(text), cpu_device());
  ASSERT_GT(fast->workspace_bytes(), 1024u) << "or this tests nothing";
  auto small = make_plan(graph(text), cpu_device(), {.workspace_limit = 1024});
  EXPECT_LE(small->workspace_bytes(), 1024u);
  EXPECT_NE(small->steps()[0].engine, fast->steps()[0].engine);
  PlanOptions none{.workspace_limit = 1024, .engines = {std::string(fast->steps()[0].engine->info().name)}};
  none.fallback = false;
  expect_error([&] { make_plan(graph(text), cpu_device(), none); }, Status::not_supported,
               {"no engine can run softmax", "bytes of workspace, the limit is 1024", "excluded by the options"});
}

TEST(Plan, TemporariesShareMemoryWhenTheyCan) {
  std::string text = "x = input f32[1024]; y = relu ";
  for (int i = 0; i < 20; ++i) text += "(neg ";
  text += "x" + std::string(20, ')') + "; output y";
  auto plan = make_plan(graph(text), cpu_device(), {.fuse = false, .engines = {"reference"}});
  EXPECT_LE(plan->workspace_bytes(), 3u * 4096) << "a chain needs two temporaries at a time";
}

TEST(Plan, EngineFilters) {
  auto engine = [](const PlanOptions& o) { return std::string(two_steps(o)->steps()[0].engine->info().name); };
  EXPECT_EQ(engine({.engines = {"reference"}}), "reference");
  expect_error([&] { engine({.engines = {"warp"}}); }, Status::bad_parameter, {"no engine named 'warp'", "reference"});
  expect_error([&] { engine({.without = {"warp"}}); }, Status::bad_parameter, {"no engine named 'warp'"});
  PlanOptions none;
  for (const Engine* e : all_engines()) none.without.emplace_back(e->info().name);
  expect_error([&] { engine(none); }, Status::not_supported,
               {"no engine can run relu", "reference: excluded by the options"});
}

// Counts how often it is asked about each region.
class CountingEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"counting", 9999, DeviceKind::cpu, true, "for this test"};
    return kInfo;
  }
  Matched match(const Region& r, const Device&) const override {
    EXPECT_TRUE(asked.insert(r.nodes).second) << "asked twice";
    return Reason::no("it only counts");
  }
  mutable std::set<std::vector<NodeId>> asked;
};

TEST(Query, PreparesAGraphOnceAndAsksAnEngineOnce) {
  size_t before = graphs_prepared();
  Query q(graph("x = input f32[64,64]; y = softmax (relu (matmul x x)); output y"), cpu_device());
  PlanOutline all = q.outline({}), apart = q.outline({.fuse = false}),
              reference = q.outline({.engines = {"reference"}, .fallback = false});
  EXPECT_EQ(graphs_prepared(), before + 1);
  EXPECT_EQ(apart.engines.size(), 3u);
  EXPECT_LE(all.engines.size(), apart.engines.size());
  EXPECT_NE(all.text, reference.text);
  EXPECT_EQ(make_plan(q, {})->steps().size(), all.engines.size());
  EXPECT_EQ(graphs_prepared(), before + 1);
  CountingEngine counting;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(q.asked({0}).answer(counting).matched.ok());
  EXPECT_EQ(counting.asked.size(), 1u);
}

TEST(Query, NamesWhatAnEngineCannotDo) {
  Query q(graph("x = input f32[64,64]; y = matmul x x; output y"), *find_device_record("h200"));
  const Engine& gemm = *find_engine("gemm_cuda");
  Config none{{{"rows", 7}}};
  expect_error([&] { step_of(q.asked({0}), gemm, none); }, Status::not_supported,
               {"gemm_cuda", "no configuration rows=7"});
  expect_error([&] { step_of(q.asked({0}), *find_engine("rope_cuda"), {}); }, Status::not_supported,
               {"no rotary embedding"});
}

TEST(Plan, WantsAFinalizedGraph) {
  expect_error([] { make_plan(std::make_shared<Graph>(), cpu_device()); }, Status::bad_parameter, {"finalized"});
  expect_error([] { make_plan(nullptr, cpu_device()); }, Status::bad_parameter, {"finalized"});
}

TEST(Plan, OperationsNobodyReadsAreLeftOut) {
  auto plan = make_plan(graph("x = input f32[4]; a = neg x; b = exp a; y = relu x; output y"), cpu_device());
  ASSERT_EQ(plan->steps().size(), 1u);
  EXPECT_EQ(plan->steps()[0].region.nodes.size(), 1u);
}

TEST(Plan, SavedPlansRunTheSame) {
  Memory a, b;
  auto plan = two_steps();
  auto loaded = load_plan(plan->save(), cpu_device());
  EXPECT_EQ(loaded->save(), plan->save());
  EXPECT_EQ(loaded->workspace_bytes(), plan->workspace_bytes());
  execute(*plan, a.bindings());
  execute(*loaded, b.bindings());
  EXPECT_TRUE(std::equal(std::begin(a.y), std::end(a.y), std::begin(b.y)));
}

// The steps of a loaded plan are cut from the graph that recognising composites gave, which must live as long as they
// do.
TEST(Plan, SavedPlansOfRecognisedGraphsRunTheSame) {
  auto plan =
      make_plan(graph("x@1 = input f32[4]; y@2 = mul x (rsqrt (add (reduce_avg (mul x x) axes=0) 0.5)); output y"),
                cpu_device(), {.engines = {"reference"}});
  ASSERT_NE(&plan->graph(), &plan->source());
  auto loaded = load_plan(plan->save(), cpu_device());
  for (const PlannedStep& s : loaded->steps()) EXPECT_EQ(s.region.graph, &loaded->graph());
  Memory a, b;
  execute(*plan, a.bindings());
  execute(*loaded, b.bindings());
  EXPECT_TRUE(std::equal(std::begin(a.y), std::end(a.y), std::begin(b.y)));
}

// Seals a changed body anew, so that what lies behind the checksum is tested too.
std::string resealed(const std::string& text, const std::string& from, const std::string& to) {
  std::string body = unseal("plan", text);
  size_t at = body.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << body;
  return seal("plan", body.replace(at, from.size(), to));
}

TEST(Plan, DamagedTextIsRefused) {
  std::string text = two_steps({.engines = {"reference"}})->save();
  auto refuse = [](const std::string& t, const std::string& word) {
    expect_error([&] { load_plan(t, cpu_device()); }, Status::corrupt_data, {word});
  };
  for (size_t n = 0; n < text.size(); ++n) refuse(text.substr(0, n), "serialised plan");
  for (size_t n = 0; n < text.size(); ++n) {
    std::string t = text;
    t[n] = static_cast<char>(t[n] ^ 1);
    refuse(t, "serialised plan");
  }
  std::string other = text;
  other.replace(other.find(' ') + 1, 1, "9");
  refuse(other, "made by version 9");
  refuse(resealed(text, "device cpu", "device moon"), "made for device 'moon'");
  refuse(resealed(text, "step reference", "step warp"), "engine 'warp' does not exist");
  refuse(resealed(text, "steps 2", "steps 3"), "step 2 is damaged");
  refuse(resealed(text, "0 1 0\n", "0 1 7\n"), "a step names node 7");
  refuse(resealed(text, "0 1 0\n", "0 1 1\n"), "steps are out of order");
  refuse(resealed(text, "0 1 1\n", "0 1 0\n"), "a step names node 0");
  Device gpu = cpu_device();
  gpu.name = "another";
  expect_error([&] { load_plan(text, gpu); }, Status::corrupt_data, {"made for device 'cpu'", "'another'"});
}

TEST(Plan, CacheIsSharedAndBounded) {
  clear_plan_cache();
  auto g = graph(kTwoSteps);
  auto plan = cached_plan(g, cpu_device());
  EXPECT_EQ(plan, cached_plan(graph(kTwoSteps), cpu_device())) << "the key is the content of the graph";
  EXPECT_NE(plan, cached_plan(g, cpu_device(), {.fuse = false}));
  EXPECT_EQ(plan_cache_size(), 2u);
  for (int i = 1; i <= 1100; ++i)
    cached_plan(graph("x = input f32[" + std::to_string(i) + "]; y = relu x; output y"), cpu_device());
  EXPECT_LE(plan_cache_size(), 1024u);
  EXPECT_NE(plan, cached_plan(g, cpu_device())) << "the least recently used plan was dropped";
  clear_plan_cache();
  EXPECT_EQ(plan_cache_size(), 0u);
}

TEST(Plan, CacheKeepsWhatWasUsedLastWithinItsLimits) {
  auto plan = make_plan(graph(kTwoSteps), cpu_device());
  size_t bytes = memory_of(*plan);
  PlanCache<std::string> cache({.plans = 100, .bytes = 3 * bytes});
  for (const char* key : {"a", "b", "c"}) cache.keep(key, plan);
  EXPECT_EQ(3 * bytes, cache.bytes());
  EXPECT_TRUE(cache.find("a"));
  cache.keep("d", plan);
  EXPECT_EQ(3 * bytes, cache.bytes());
  EXPECT_FALSE(cache.find("b")) << "was used least recently";
  for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(cache.find(key)) << key;
  PlanCache<std::string> none({.plans = 0, .bytes = SIZE_MAX}), small({.plans = 9, .bytes = bytes - 1});
  none.keep("a", plan), small.keep("a", plan);
  EXPECT_EQ(0u, none.size() + small.size());
}

TEST(Plan, MemoryOfAPlanCountsItsConstants) {
  auto with = [](const std::string& values) {
    return memory_of(
        *make_plan(graph("x = input f32[4]; c = const " + values + "; y = add x c; output y"), cpu_device()));
  };
  EXPECT_EQ(with("f32[1] 1") + 3 * sizeof(float), with("f32[4] 1,2,3,4"));
}

// Runs f on 8 threads at once; errors of any of them are reported.
template <class F>
void on_threads(const F& f) {
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      try {
        f(i);
      } catch (const std::exception&) {
        ++errors;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(errors, 0);
}

TEST(Plan, CacheServesThreads) {
  clear_plan_cache();
  on_threads([&](int thread) {
    for (int i = 0; i < 200; ++i) {
      auto plan = cached_plan(
          graph("x = input f32[" + std::to_string(1 + (i + thread) % 20) + "]; y = relu x; output y"), cpu_device());
      if (i % 50 == 49 && thread == 0) clear_plan_cache();
      require(plan->steps().size() == 1, "a plan of one operation has one step");
    }
  });
  EXPECT_LE(plan_cache_size(), 20u);
}

TEST(Plan, ExecutesOnManyThreadsAtOnce) {
  auto g =
      graph("a = input f32[33,17]; b = input f32[17,29]; c = input f32[1,29]; y = gelu (add (matmul a b) c); output y");
  auto plan = make_plan(g, cpu_device());
  GraphBuffers expected(*g, {});
  GuardedBuffer scratch(plan->workspace_bytes(), 256);
  plan->execute(bind(*g, expected), scratch.data(), scratch.size());
  TensorId y = g->find("y");
  on_threads([&](int) {
    GraphBuffers mine(*g, {});
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    auto bindings = bind(*g, mine);
    for (int i = 0; i < 20; ++i) {
      mine.poison_outputs();
      plan->execute(bindings, workspace.data(), workspace.size());
      auto &a = mine.buffer(y), &b = expected.buffer(y);
      require(std::equal(a.data(), a.data() + a.size(), b.data()), "threads disturb each other");
      require(mine.damage().empty() && workspace.intact(), "memory was overwritten");
    }
  });
}

TEST(Plan, OtherSizes) {
  auto plan = make_plan(graph("x@1 = input f32[2,3]; y@2 = relu x; output y"), cpu_device());
  alignas(256) float x[8] = {-1, 2, -3, 4, -5, 6, -7, 8}, y[8] = {};
  std::vector<Binding> b = {{1, x}, {2, y}};
  std::vector<ShapeOverride> sizes = {{1, {4, 2}, {}}};
  execute(*plan, b, sizes);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], std::max(x[i], 0.0f));
  EXPECT_EQ(plan->with_shapes(sizes), plan->with_shapes(sizes)) << "made once and kept";
  expect_error(
      [&] {
        plan->with_shapes(std::vector<ShapeOverride>{{9, {4, 2}, {}}});
      },
      Status::bad_parameter, {"unique id 9"});
  expect_error(
      [&] {
        plan->with_shapes(std::vector<ShapeOverride>{{1, {4}, {}}});
      },
      Status::bad_parameter, {"'x'", "1 dimensions"});
}

TEST(Plan, OtherSizesFromManyThreads) {
  auto plan = make_plan(graph("x@1 = input f32[2,3]; y@2 = relu x; output y"), cpu_device());
  on_threads([&](int thread) {
    for (int i = 0; i < 100; ++i) {
      int64_t n = 1 + (i + thread) % 80;  // more than are kept
      auto other = plan->with_shapes(std::vector<ShapeOverride>{{1, {n, 3}, {}}});
      require(other->graph().tensor(other->graph().find("y")).dims == Dims{n, 3}, "wrong sizes");
    }
  });
}

std::shared_ptr<const Plan> plan_for(const std::string& text) { return make_plan(graph(text), cpu_device()); }

TEST(Plan, TransposedOperandsAreViews) {
  auto plan = plan_for(
      "a = input f32[4,6]; w = input f32[5,6]; b = input f32[4,5]; r = reshape a size=2,12 mode=logical; "
      "y = matmul a (transpose w perm=1,0); z = matmul (transpose (add y b) perm=1,0) a; "
      "s = matmul (reshape r size=4,6 mode=logical) (transpose w perm=1,0); output y; output z; output s");
  int views = 0;
  for (const PlannedStep& s : plan->steps()) views += s.step->view_of() != kNone;
  EXPECT_EQ(views, 5);
}

TEST(Plan, WhatIsComputedAgainJoinsItsReaders) {
  // Of the forward pass x is kept: exp and tanh are computed in the forward and again in the backward step.
  auto plan = plan_for(
      "a = input f32[8,8]; w = input f32[8,8]; x = matmul a w; y = mul (tanh (exp x)) (exp (neg x)); z = matmul y w; "
      "l = reduce_add (mul z z); da = grad l a; output da");
  for (const PlannedStep& s : plan->steps())
    for (TensorId t : s.region.outputs) {
      std::string op = spelling(plan->graph().node(plan->graph().producer(t)));
      EXPECT_TRUE(op != "exp" && op != "tanh" && op != "neg") << op;
    }
}

TEST(Plan, NormsAndTheQuantisationBehindThemAreOneStep) {
  for (const char* norm : {"rms_norm x s", "layer_norm x s", "softmax x"}) {
    auto plan = plan_for("x = input bf16[8,128]; s = input f32[1,128]; n = " + std::string(norm) +
                         "; y e4m3, f e8m0 = block_scale_quantize n; output y; output f");
    ASSERT_EQ(plan->steps().size(), 1u) << norm;
    EXPECT_EQ(plan->steps()[0].engine->info().name, std::string_view("fused_cpu"));
  }
}

TEST(Plan, WhatAnUpdateReadsJoinsIt) {
  // The products with old values do not depend on the gradient, yet belong to the step that does.
  auto plan = plan_for(
      "x = input f32[8,8]; w = input f32[8,8]; m = input f32[8,8]; d = matmul x w; "
      "a = add (mul m 0.9) (mul d 0.1); p = sub (mul w 0.99) (mul a 0.01); output a; output p");
  EXPECT_EQ(plan->steps().size(), 1u);
}

// Wide rows, so that temporaries are larger than what a step needs for itself.
const char* const kDecomposed =
    "x@1 = input f32[2,4,64,256]; f@2 = input f32[1,1,64,128]; y@3 = rope (relu x) f; output y";

TEST(Decomposition, StagesAreStepsOfThePlan) {
  auto plan = plan_for(kDecomposed);
  ASSERT_EQ(plan->stages().size(), 1u);
  EXPECT_EQ(plan->stages()[0].rule->name, "rope");
  ASSERT_EQ(plan->steps().size(), 3u) << "relu, angles, turning";
  EXPECT_EQ(plan->regions().size(), 2u);
  for (size_t i : {1, 2}) EXPECT_EQ(plan->steps()[i].region.graph, &plan->stages()[0].how->graph());
  std::string text = to_text(explain(*plan));
  for (const char* part : {"steps 2 to 3: stages of rope", "y = rope", "stages of rope: yes", "reference: yes"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(Decomposition, SavedPlansKeepTheStages) {
  auto plan = plan_for(kDecomposed), loaded = load_plan(plan->save(), cpu_device());
  EXPECT_EQ(loaded->save(), plan->save());
  EXPECT_EQ(loaded->workspace_bytes(), plan->workspace_bytes());
  auto refuse = [](const std::string& t, const std::string& word) {
    expect_error([&] { load_plan(t, cpu_device()); }, Status::corrupt_data, {word});
  };
  refuse(resealed(plan->save(), "stages rope 2", "stages slope 2"), "2 stages of 'slope'");
  // As engines once took it themselves.
  std::string body = unseal("plan", plan->save());
  size_t from = body.find("stages rope"), to = body.find("\nx");
  body.replace(from, to - from, "step fused_cpu 1 block 1024 1 1");
  refuse(seal("plan", body), "rope is neither pointwise nor row-wise");
}

TEST(Decomposition, StagesThatNeedTooMuchWorkspaceAreNotTaken) {
  std::string text = "x = input f32[2,4,64,256]; f = input f32[1,1,64,128]; y = rope x f; output y";
  auto fast = plan_for(text);
  ASSERT_EQ(fast->stages().size(), 1u);
  auto small = make_plan(graph(text), cpu_device(), {.workspace_limit = 1024});
  EXPECT_TRUE(small->stages().empty());
  EXPECT_EQ(small->steps()[0].engine->info().name, "reference");
  PlanOptions none{.workspace_limit = 1024, .engines = {"fused_cpu"}};
  none.fallback = false;
  expect_error([&] { make_plan(graph(text), cpu_device(), none); }, Status::not_supported,
               {"no engine can run rope", "stages of rope: the engines that are allowed do not take all stages"});
}

// Squares are not needed any more where the second sums over boxes begin.
TEST(Decomposition, TemporariesShareTheWorkspace) {
  auto plan = plan_for("x = input f32[8,64,32,32]; dy = input f32[8,64,32,32]; dx = lrn_bwd x dy; output dx");
  ASSERT_EQ(plan->stages().size(), 1u);
  size_t all = plan->stages()[0].how->temporary_bytes(), scratch = 0;
  for (const PlannedStep& s : plan->steps()) scratch = std::max(scratch, s.step->workspace_bytes());
  EXPECT_LT(plan->workspace_bytes(), all + scratch);
}

TEST(Explain, SaysWhatThePlanSays) {
  auto plan = make_plan(graph("x = input f32[8]; d = exp x; y = add (relu x) 1; output y"), cpu_device(),
                        {.fuse = false, .engines = {"reference"}});
  Explanation e = explain(*plan);
  ASSERT_EQ(e.steps.size(), 2u);
  EXPECT_EQ(e.kernels, plan->kernels());
  EXPECT_EQ(e.bytes, plan->bytes_moved());
  EXPECT_EQ(e.workspace, plan->workspace_bytes());
  EXPECT_EQ(e.steps[0].answers.size(),
            static_cast<size_t>(std::count_if(all_engines().begin(), all_engines().end(),
                                              [](const Engine* x) { return x->info().device == DeviceKind::cpu; })));
  EXPECT_EQ(e.steps[0].engine, "reference");
  std::string text = to_text(e);
  for (const char* part : {"plan for cpu: 2 steps", "y = add", "reference: yes", "(chosen)", "1 operation is left out"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(Explain, NumbersForPeople) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1536), "1.54 kB");
  EXPECT_EQ(human_bytes(67108864), "67.1 MB");
  EXPECT_EQ(human_seconds(2.5e-3), "2.50 ms");
  EXPECT_EQ(human_seconds(150), "150 s");
  EXPECT_EQ(human_count(2e12), "2 T");
}

}  // namespace
}  // namespace tsr
