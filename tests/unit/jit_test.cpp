// SPDX-License-Identifier: Apache-2.0
// Kernels from the compiler, from memory and from disk, and the emulator that runs them on the processor. What needs
// several processes is in tests/kernel_cache_test.sh.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/cache_folder.hpp"
#include "expect_error.hpp"
#include "graph/text.hpp"
#include "harness/conversions.hpp"
#include "harness/kernel_check.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/jit/sources.hpp"
#include "runtime/jit/store.hpp"
#include "runtime/kernel.hpp"

namespace tsr {
namespace {

namespace fs = std::filesystem;

const Device& h200() { return *find_device_record("h200"); }

struct Args {
  int* out;
};

// A kernel of the statements given, which may use `a.out`.
Program program(const std::string& statements) {
  return {.include = "device/cluster.cuh",
          .generated = "#include \"device/block.cuh\"\nstruct Args { int* out; };\ninline void body(const Args& a) { " +
                       statements + " }",
          .args = "Args",
          .body = "body"};
}

int64_t made(const KernelCounts& c) { return c.compiled + c.from_disk + c.from_pack; }

// Tests that need the compiler.
class Jit : public testing::Test {
  void SetUp() override {
    if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  }
};

TEST_F(Jit, ManyThreadsMakeAKernelOnce) {
  forget_kernels();
  KernelCounts before = kernel_counts();
  Program p = program("a.out[threadIdx.x] = 1;");
  std::vector<std::shared_ptr<const Kernel>> got(8);
  std::vector<std::thread> threads;
  for (auto& k : got) threads.emplace_back([&] { k = get_kernel(p, h200()); });
  for (auto& t : threads) t.join();
  for (const auto& k : got) EXPECT_EQ(k, got[0]);
  KernelCounts after = kernel_counts();
  EXPECT_EQ(made(after) - made(before), 1);
  EXPECT_EQ(after.from_memory - before.from_memory, 7);
  EXPECT_FALSE(got[0]->code().empty());
  EXPECT_GT(got[0]->info().registers, 0);
}

TEST_F(Jit, EachTargetHasItsOwnKernel) {
  Program p = program("a.out[threadIdx.x] = 2;");
  std::string h = get_kernel(p, h200())->code(), a = get_kernel(p, *find_device_record("a100"))->code();
  EXPECT_NE(h, a);
}

TEST_F(Jit, ANewShapeCompilesNothing) {
  auto plan = [](const std::string& text) { return make_plan(std::make_shared<Graph>(parse_graph(text)), h200()); };
  struct Pair {
    const char *first, *second;
  };
  for (auto [first, second] :
       {Pair{"x = input bf16[64,1024]; y = gelu (add x 1); output y",
             "x = input bf16[8,96]; y = gelu (add x 1); output y"},
        Pair{"x = input f32[16,1000]; y = softmax x; output y", "x = input f32[300,1012]; y = softmax x; output y"},
        Pair{"x = input bf16[512,4096]; y = reduce_add x axes=0; output y f32",
             "x = input bf16[640,4000]; y = reduce_add x axes=0; output y f32"}}) {
    (void)plan(first);
    KernelCounts before = kernel_counts();
    (void)plan(second);
    EXPECT_EQ(made(kernel_counts()), made(before)) << second;
  }
}

TEST_F(Jit, CompileErrorsNameTheCauseAndAreNotKept) {
  Program p = program("a.out[0] = no_such_name;");
  for (int i = 0; i < 2; ++i) {
    expect_error([&] { (void)get_kernel(p, h200()); }, Status::internal_error,
                 {"does not compile for sm_90a", "no_such_name"});
  }
  expect_error([&] { (void)get_kernel({.include = "no/such.cuh"}, h200()); }, Status::internal_error,
               {"no device source 'no/such.cuh'"});
}

TEST_F(Jit, AKernelOfAnAbsentDeviceSaysSo) {
  auto k = get_kernel(program("a.out[threadIdx.x] = 1;"), h200());
  expect_error([&] { k->launch({}, nullptr, Args{}); }, Status::not_supported, {"is for h200, which is not there"});
}

TEST(KernelLog, ProblemsAreReadFromTheLog) {
  EXPECT_EQ(kernel_problem({.registers = 32, .log = "ptxas info : Used 32 registers"}), "");
  EXPECT_NE(kernel_problem({.spill_bytes = 8}).find("8 bytes of registers are spilled"), std::string::npos);
  EXPECT_NE(kernel_problem({.stack_bytes = 64}).find("64 bytes of stack"), std::string::npos);
  EXPECT_EQ(kernel_problem({.stack_bytes = 32}), "");  // sine and cosine of huge angles
  EXPECT_NE(kernel_problem({.stack_bytes = 32, .spill_bytes = 8}).find("32 bytes of stack"), std::string::npos);
  std::string log =
      "first\n(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x\nlast";
  EXPECT_EQ(kernel_problem({.log = log}),
            "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x");
  EXPECT_NE(kernel_problem({.log = "ptxas warning: setmaxnreg ignored to maintain minimum requirements"}), "");
}

TEST_F(Jit, SpillsAreSeen) {
  // More values than the registers of 1024 threads hold, all alive until the end.
  Program p = program(
      "float v[200]; for (int i = 0; i < 200; ++i) v[i] = ((volatile float*)a.out)[i]; __syncthreads();"
      "for (int i = 0; i < 200; ++i) ((volatile float*)a.out)[i * 3] = v[i] * v[199 - i];");
  p.threads = 1024;
  EXPECT_NE(kernel_problem(get_kernel(p, h200())->info()), "");
}

// --- kernels on disk
class KernelStore : public testing::Test {
 protected:
  KernelStore() : folder_(fs::path(testing::TempDir()) / "tessera_kernel_store") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~KernelStore() override { fs::remove_all(folder_); }
  fs::path file(const std::string& key) const { return folder_ / (key + ".kernel"); }
  fs::path folder_;
};

TEST_F(KernelStore, ReadsWhatWasWritten) {
  jit::Compiled c{std::string("code\0with zero", 14), "log\nof two lines"};
  ASSERT_TRUE(jit::write_kernel(folder_.string(), "k", c));
  auto got = jit::read_kernel(folder_.string(), "k");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->code, c.code);
  EXPECT_EQ(got->log, c.log);
  EXPECT_FALSE(jit::read_kernel(folder_.string(), "other"));
  EXPECT_FALSE(jit::read_kernel("", "k"));
}

TEST_F(KernelStore, DamagedAndTruncatedFilesAreNotUsed) {
  jit::write_kernel(folder_.string(), "k", {"some code", "a log"});
  std::string whole = *read_file(file("k").string());
  for (size_t n = 0; n < whole.size(); ++n) {
    write_file_atomically(file("k").string(), whole.substr(0, n));
    EXPECT_FALSE(jit::read_kernel(folder_.string(), "k")) << "cut after " << n << " bytes";
    std::string damaged = whole;
    damaged[n] = static_cast<char>(damaged[n] ^ 1);
    write_file_atomically(file("k").string(), damaged);
    EXPECT_FALSE(jit::read_kernel(folder_.string(), "k")) << "byte " << n << " changed";
  }
}

TEST_F(KernelStore, TrimmingKeepsWhatWasUsedLast) {
  setenv("TESSERA_KERNEL_CACHE_MB", "1", 1);
  for (int i = 0; i < 20; ++i) {
    std::string key = "k" + std::to_string(i);
    jit::write_kernel(folder_.string(), key, {std::string(100'000, 'x'), ""});
    fs::last_write_time(file(key), fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
  }
  ASSERT_TRUE(jit::read_kernel(folder_.string(), "k0"));
  jit::trim_kernels(folder_.string());
  unsetenv("TESSERA_KERNEL_CACHE_MB");
  uintmax_t bytes = 0;
  for (const auto& f : fs::directory_iterator(folder_)) bytes += f.file_size();
  EXPECT_LE(bytes, 1u << 20);
  EXPECT_GE(bytes, 700'000u);
  EXPECT_TRUE(fs::exists(file("k0"))) << "it was read just now";
  EXPECT_FALSE(fs::exists(file("k1")));
  EXPECT_TRUE(fs::exists(file("k19")));
}

TEST(KernelSources, ClosuresFollowIncludes) {
  EXPECT_NE(jit::closure_hash("device/types.cuh"), jit::closure_hash("device/block.cuh"));
  for (const jit::Source& s : jit::sources()) EXPECT_NO_THROW(jit::closure_hash(s.path)) << s.path;
}

// The next kernel begins before this one ends: each waits before it touches memory.
TEST(KernelStart, WaitsForThoseInFront) {
  if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  for (const char* graph : {"x = input f32[64,512]; y = softmax x; output y",
                            "a = input bf16[256,256]; b = input bf16[256,256]; c = matmul a b; output c bf16",
                            "q = input bf16[1,8,256,64]; k = input bf16[1,8,256,64]; v = input bf16[1,8,256,64]; o = "
                            "sdpa_fwd q k v; output o",
                            "q = input bf16[4,8,1,64]; k = input bf16[4,8,4096,64]; v = input bf16[4,8,4096,64]; o = "
                            "sdpa_fwd q k v; output "
                            "o"}) {
    KernelRecorder recorder;
    make_plan(std::make_shared<const Graph>(parse_graph(graph)), h200());
    ASSERT_FALSE(recorder.entries().empty()) << graph;
    for (const auto& e : recorder.entries()) {
      std::string ptx = jit::compile_cuda(kernel_text(e.program, h200()), h200().target, jit::Form::ptx).code;
      size_t entry = ptx.find(".entry"), wait = ptx.find("griddepcontrol.wait", entry);
      ASSERT_NE(wait, std::string::npos) << e.program.body;
      for (const char* touches : {"ld.global", "st.global", "red.global", "atom.global", "cp.async"})
        EXPECT_LT(wait, ptx.find(touches, entry)) << touches << " in " << e.program.body;
    }
  }
}

// --- the emulator
TEST(Emulator, RunsBlocksAndBarriers) {
  auto k =
      get_kernel(program("int* s = reinterpret_cast<int*>(tsr::dev::shared_memory()); s[threadIdx.x] = threadIdx.x;"
                         "__syncthreads(); a.out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];"),
                 emulated_device());
  std::vector<int> out(128);
  k->launch({.blocks = 2, .threads = 64, .shared_bytes = 256}, nullptr, Args{out.data()});
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 63 - i % 64);
}

TEST(Emulator, ReportsBarriersThatNotAllReach) {
  auto k = get_kernel(program("if (threadIdx.x < 16) __syncthreads(); else __syncwarp();"), emulated_device());
  expect_error([&] { k->launch({.blocks = 1, .threads = 32}, nullptr, Args{}); }, Status::execution_failed,
               {"wait for each other for ever", "16 threads, the first is 0, of block 0 for a barrier of the block",
                "its warp"});
  // What was left behind must not disturb the next launch.
  auto good = get_kernel(program("__syncthreads(); a.out[threadIdx.x] = 1;"), emulated_device());
  std::vector<int> out(32);
  good->launch({.blocks = 1, .threads = 32}, nullptr, Args{out.data()});
  EXPECT_EQ(out, std::vector<int>(32, 1));
}

TEST(Emulator, ClustersReadEachOther) {
  auto k = get_kernel(program("int* s = reinterpret_cast<int*>(tsr::dev::shared_memory()); s[0] = blockIdx.x;"
                              "tsr::dev::cluster_sync(); a.out[blockIdx.x] = *tsr::dev::in_block(s, 1 - "
                              "tsr::dev::cluster_rank()); tsr::dev::cluster_sync();"),
                      emulated_device());
  std::vector<int> out(4);
  k->launch({.blocks = 4, .threads = 32, .shared_bytes = 4, .cluster = 2}, nullptr, Args{out.data()});
  EXPECT_EQ(out, (std::vector<int>{1, 0, 3, 2}));
  expect_error([&] { k->launch({.blocks = 3, .threads = 32, .cluster = 2}, nullptr, Args{out.data()}); },
               Status::execution_failed, {"do not make whole clusters"});
}

TEST(Emulator, ConvertsEveryPatternAsTheHostDoes) {
  EXPECT_EQ(check_conversions(emulated_device()), std::vector<std::string>{});
}

}  // namespace
}  // namespace tsr
