// SPDX-License-Identifier: Apache-2.0
// The C calls that make descriptors. Those that run plans are in execute.cpp.
#include "capi/backend/descriptor.hpp"

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                                       cudnnBackendDescriptor_t* descriptor) {
  return answer(TESSERA_CALL(cudnnBackendCreateDescriptor, descriptorType, descriptor), [&] {
    given(descriptor, "descriptor");
    const DescriptorRow* row = find_row(descriptorType);
    demand(row, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "descriptors of type ",
           static_cast<int>(descriptorType), " cannot be created");
    *descriptor = new Handle{std::make_shared<Descriptor>(*row)};
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return answer(TESSERA_CALL(cudnnBackendDestroyDescriptor, descriptor),
                [&] { delete &given_handle(descriptor, "descriptor"); });
}

// Descriptors are ready when created: there is nothing left to do.
cudnnStatus_t CUDNNWINAPI cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return answer(TESSERA_CALL(cudnnBackendInitialize, descriptor), [&] { given_descriptor(descriptor, "descriptor"); });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType, int64_t elementCount,
                                                   const void* arrayOfElements) {
  auto entry = TESSERA_CALL(cudnnBackendSetAttribute, descriptor, attributeName, attributeType, elementCount,
                            elements(arrayOfElements, attributeType, elementCount));
  return answer(entry, [&] {
    given_descriptor(descriptor, "descriptor").set(attributeName, attributeType, elementCount, arrayOfElements);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return answer(TESSERA_CALL(cudnnBackendFinalize, descriptor),
                [&] { given_descriptor(descriptor, "descriptor").finalize(); });
}

cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t requestedElementCount, int64_t* elementCount,
                                                   void* arrayOfElements) {
  auto entry = TESSERA_CALL(cudnnBackendGetAttribute, descriptor, attributeName, attributeType, requestedElementCount,
                            elementCount, arrayOfElements);
  return answer(entry, [&] {
    given_descriptor(descriptor, "descriptor")
        .get(attributeName, attributeType, requestedElementCount, elementCount, arrayOfElements);
  });
}
