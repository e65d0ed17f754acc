// SPDX-License-Identifier: Apache-2.0
// DEVICEPROP: a device that need not be there, for planning without one.
#include <nlohmann/json.hpp>

#include "capi/backend/planning.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

using nlohmann::json;

std::string to_json(const Device& d) {
  json j;
  j["tessera_device"] = d.name;
  if (d.kind == DeviceKind::cuda) {
    j["target"] = d.target;
    j["arch"] = d.arch;
    j["units"] = d.units;
    j["shared_bytes"] = d.shared_bytes;
    j["cache_bytes"] = d.cache_bytes;
    j["bytes_per_second"] = d.bytes_per_second;
    j["flops_per_second"] = d.flops_per_second;
    j["narrow_flops_per_second"] = d.narrow_flops_per_second;
    j["step_seconds"] = d.step_seconds;
  }
  return j.dump();
}

Device gpu_from(const json& j) {
  Device d;
  d.kind = DeviceKind::cuda;
  d.name = j.at("tessera_device").get<std::string>();
  d.target = j.at("target").get<std::string>();
  d.arch = j.at("arch").get<int>();
  d.units = j.at("units").get<int>();
  d.shared_bytes = j.at("shared_bytes").get<int64_t>();
  d.cache_bytes = j.at("cache_bytes").get<int64_t>();
  d.bytes_per_second = j.at("bytes_per_second").get<double>();
  d.flops_per_second = j.at("flops_per_second").get<double>();
  d.narrow_flops_per_second = j.at("narrow_flops_per_second").get<double>();
  d.step_seconds = j.at("step_seconds").get<double>();
  return d;
}

// A name alone stands for a device that find_device knows.
Device from_json(const std::string& text) {
  json j = json::parse(text, nullptr, false);
  demand(j.is_object() && j.contains("tessera_device") && j["tessera_device"].is_string(), CUDNN_STATUS_BAD_PARAM,
         "DEVICEPROP_JSON_REPRESENTATION (", text.size(), " characters) describes no device of this library; it reads ",
         "for instance {\"tessera_device\":\"h200\"}");
  try {
    return j.contains("target") ? gpu_from(j) : find_device(j["tessera_device"].get<std::string>());
  } catch (const json::exception& e) {
    refuse(CUDNN_STATUS_BAD_PARAM, "DEVICEPROP_JSON_REPRESENTATION is damaged: ", e.what());
  }
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
