// SPDX-License-Identifier: Apache-2.0
// DEVICEPROP: a device that need not be there, for planning without one.
#include <type_traits>

#include "capi/backend/json.hpp"
#include "capi/backend/planning.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

// Everything of a device that planning asks for, under its name in JSON.
template <class D, class Visit>
void visit_numbers(D& d, const Visit& visit) {
  visit("arch", d.arch);
  visit("units", d.units);
  visit("shared_bytes", d.shared_bytes);
  visit("cache_bytes", d.cache_bytes);
  visit("bytes_per_second", d.bytes_per_second);
  visit("f64_per_second", d.rates.f64);
  visit("f32_per_second", d.rates.f32);
  visit("tf32_per_second", d.rates.tf32);
  visit("bits16_per_second", d.rates.bits16);
  visit("bits8_per_second", d.rates.bits8);
  visit("sparse_per_second", d.rates.sparse);
  visit("step_seconds", d.step_seconds);
}

std::string to_json(const Device& d) {
  JsonObject j = {{"tessera_device", d.name}};
  if (d.kind == DeviceKind::cuda) {
    j["target"] = d.target;
    visit_numbers(d, [&](const char* name, auto v) { j[name] = static_cast<double>(v); });
  }
  return print_json(j);
}

Device gpu_from(const JsonObject& j, const std::string& name, const std::string& target) {
  Device d;
  d.kind = DeviceKind::cuda;
  d.name = name;
  d.target = target;
  visit_numbers(d, [&](const char* member, auto& v) {
    const auto* number = find<double>(j, member);
    constexpr double kLargest = 0x1p53;
    demand(number && *number >= 0 && *number < kLargest, CUDNN_STATUS_BAD_PARAM,
           "DEVICEPROP_JSON_REPRESENTATION is damaged: ", member, " must be a number that is not negative");
    v = static_cast<std::remove_reference_t<decltype(v)>>(*number);
  });
  return d;
}

// A name alone stands for a device that find_device knows.
Device from_json(const std::string& text) {
  std::optional<JsonObject> j = parse_json(text);
  const auto* name = j ? find<std::string>(*j, "tessera_device") : nullptr;
  demand(name, CUDNN_STATUS_BAD_PARAM, "DEVICEPROP_JSON_REPRESENTATION (", text.size(),
         " characters) describes no device of this library; it reads for instance {\"tessera_device\":\"h200\"}");
  if (!j->contains("target")) return find_device(*name);
  const auto* target = find<std::string>(*j, "target");
  demand(target, CUDNN_STATUS_BAD_PARAM, "DEVICEPROP_JSON_REPRESENTATION is damaged: target must be a text");
  return gpu_from(*j, *name, *target);
}

Device by_number(int number) {
  demand(number >= 0, CUDNN_STATUS_BAD_PARAM, "DEVICEPROP_DEVICE_ID is ", number);
  Device d = default_device();
  return is_gpu(d) ? cuda_device(number) : d;
}

}  // namespace

void finalize_device(Descriptor& d) {
  auto device = std::make_shared<Device>();
  std::vector<char> text = d.list<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  if (!text.empty())
    *device = from_json({text.begin(), text.end()});
  else if (d.has(CUDNN_ATTR_DEVICEPROP_HANDLE))
    *device = given(d.one<cudnnHandle_t>(CUDNN_ATTR_DEVICEPROP_HANDLE, nullptr), "DEVICEPROP_HANDLE").device;
  else
    *device = by_number(d.one<int32_t>(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, 0));
  std::string json = to_json(*device);
  d.put(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::vector<char>(json.begin(), json.end()));
  make(d, device);
}

}  // namespace tsr::capi
