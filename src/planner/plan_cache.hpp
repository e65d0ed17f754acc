// SPDX-License-Identifier: Apache-2.0
// Plans that were made before, within two limits: TESSERA_PLAN_CACHE plans and TESSERA_PLAN_CACHE_MB of memory. What
// was used least recently goes first. For any number of threads.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "planner/plan.hpp"

namespace tsr {

// Host memory of a plan, estimated: its graphs with their constants, and a typical size for each step.
size_t memory_of(const Plan& p);

struct CacheLimits {
  size_t plans, bytes;
};
CacheLimits cache_limits();  // as set when first asked

template <class Key>
class PlanCache {
 public:
  explicit PlanCache(CacheLimits limits = cache_limits()) : limits_(limits) {}

  std::shared_ptr<const Plan> find(const Key& key) {
    std::lock_guard guard(lock_);
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->plan;
  }
  // Another thread may have been faster: then its plan stays. A plan beyond the limits is not kept.
  void keep(const Key& key, std::shared_ptr<const Plan> plan) {
    size_t bytes = memory_of(*plan);
    std::lock_guard guard(lock_);
    if (limits_.plans == 0 || bytes > limits_.bytes || index_.contains(key)) return;
    order_.push_front({key, std::move(plan), bytes});
    index_[key] = order_.begin();
    bytes_ += bytes;
    while (order_.size() > limits_.plans || bytes_ > limits_.bytes) drop_last();
  }
  size_t size() const {
    std::lock_guard guard(lock_);
    return order_.size();
  }
  size_t bytes() const {
    std::lock_guard guard(lock_);
    return bytes_;
  }
  void clear() {
    std::lock_guard guard(lock_);
    order_.clear();
    index_.clear();
    bytes_ = 0;
  }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Plan> plan;
    size_t bytes;
  };
  void drop_last() {
    bytes_ -= order_.back().bytes;
    index_.erase(order_.back().key);
    order_.pop_back();
  }

  const CacheLimits limits_;
  mutable std::mutex lock_;
  std::list<Entry> order_;  // the most recently used first
  std::unordered_map<Key, typename std::list<Entry>::iterator> index_;
  size_t bytes_ = 0;
};

}  // namespace tsr
