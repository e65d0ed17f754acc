// SPDX-License-Identifier: Apache-2.0
// Stages that only those get who ask for them by name. What they compute is compared by the cases of convolutions.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "planner/explain.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

constexpr const char* kForward =
    "x = input f32[2,8,10,9]; w = input f32[6,8,3,3]; b = input f32[1,6,1,1]\n"
    "y = relu (add (conv_fprop x w pad=1,1) b); output y";
constexpr const char* kDataGradient =
    "dy = input bf16[2,8,10,9]:nhwc; w = input bf16[8,6,3,3]:nhwc\n"
    "dx = conv_dgrad dy w pad=1,1 size=10,9; output dx bf16:nhwc";
constexpr const char* kFilterGradient =
    "dy = input f32[2,6,10,9]; x = input f32[2,8,10,9]; dw = conv_wgrad dy x pad=1,1 size=3,3; output dw";

std::shared_ptr<const Plan> plan(const char* text, const Device& d, const std::string& stages) {
  return make_plan(std::make_shared<Graph>(parse_graph(text)), d, {.stages = stages, .tuned = false});
}

bool is_of(const std::string& name, const Plan& p) {
  return p.stages().size() == 1 && p.stages()[0].rule->name == name;
}

TEST(StagesByName, AreForThoseWhoAskForThem) {
  for (const char* name : {"winograd", "fourier"})
    for (const Device& d : {cpu_device(), emulated_device()})
      for (const char* text : {kForward, kDataGradient, kFilterGradient}) {
        EXPECT_FALSE(is_of(name, *plan(text, d, "")));
        EXPECT_EQ(to_text(explain(*plan(text, d, ""))).find(name), std::string::npos);
        auto asked = plan(text, d, name);
        EXPECT_TRUE(is_of(name, *asked)) << to_text(explain(*asked));
        EXPECT_EQ(load_plan(asked->save(), d)->save(), asked->save());
      }
}

TEST(StagesByName, DeclineWhatShowsTheirRounding) {
  for (const char* name : {"winograd", "fourier"})
    for (const char* text : {
             "x = input i8[1,4,8,8]; w = input i8[4,4,3,3]; y = conv_fprop x w; output y i32",
             "x = input f32[1,4,8,8]; w = input f32[4,4,3,3]; c = conv_fprop x w; y = relu c; output c bf16; output y",
             "x = input f32[1,4,8,8]; w = input f32[4,4,3,3]; y = conv_fprop x w stride=2,2; output y",
             "x = input f32[1,4,8,8]; w = input f32[4,4,3,3]; y = conv_fprop x w dilation=2,2; output y",
         })
      EXPECT_FALSE(is_of(name, *plan(text, cpu_device(), name))) << name << ": " << text;
}

// Groups, other filters and other numbers of axes are Fourier's alone.
TEST(StagesByName, WinogradIsOfThreeByThree) {
  for (const char* text : {
           "x = input f32[1,4,8,8]; w = input f32[4,2,3,3]; y = conv_fprop x w; output y",
           "x = input f32[1,4,8,8]; w = input f32[4,4,5,3]; y = conv_fprop x w; output y",
           "x = input f32[1,4,8]; w = input f32[4,4,3]; y = conv_fprop x w; output y",
           "x = input f32[1,4,8,8,8]; w = input f32[4,4,3,3,3]; y = conv_fprop x w; output y",
       }) {
    EXPECT_FALSE(is_of("winograd", *plan(text, cpu_device(), "winograd"))) << text;
    EXPECT_TRUE(is_of("fourier", *plan(text, cpu_device(), "fourier"))) << text;
  }
}

}  // namespace
}  // namespace tsr
