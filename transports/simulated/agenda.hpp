// SPDX-License-Identifier: Apache-2.0
// The events of a simulation by time. Ranks in step make thousands of events for one instant. So an instant has one
// place in the order of times, and its events are a list of parts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace torii::simulated {

/// Virtual time in picoseconds: whole numbers, so that equal runs are equal and periodic runs can be recognised.
using Time = std::int64_t;

/// Events of one instant leave in the order in which they were added.
template <class Event>
class Agenda {
 public:
  bool empty() const noexcept { return instants_.empty(); }
  /// The time of the next events.
  Time time() const noexcept { return instants_.front().time; }

  void add(Time time, const Event& event) noexcept {
    Recent& recent = recent_of(time);
    if (recent.time != time) recent = {time, open(time)};
    List& list = lists_[recent.list];
    if (parts_[list.last].count == kPartEvents) {
      const std::uint32_t next = take_part();
      parts_[list.last].next = next;
      list.last = next;
    }
    Part& part = parts_[list.last];
    part.events[part.count++] = event;
  }

  /// Moves the events of the next instant behind those of `due`.
  void take(std::vector<Event>& due) noexcept {
    std::pop_heap(instants_.begin(), instants_.end());
    const Instant instant = instants_.back();
    instants_.pop_back();
    Recent& recent = recent_of(instant.time);
    if (recent.time == instant.time && recent.list == instant.list) recent = {};
    const List list = lists_[instant.list];
    for (std::uint32_t number = list.first;; number = parts_[number].next) {
      const Part& part = parts_[number];
      due.insert(due.end(), part.events.begin(), part.events.begin() + part.count);
      free_parts_.push_back(number);
      if (number == list.last) break;
    }
    free_lists_.push_back(instant.list);
  }

 private:
  static constexpr std::size_t kPartEvents = 15;
  static constexpr std::size_t kRecentBits = 10;

  struct Part {
    std::array<Event, kPartEvents> events;
    std::uint32_t count = 0;
    std::uint32_t next = 0;
  };
  struct List {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  struct Instant {
    Time time;
    std::uint64_t order;  ///< of its making
    std::uint32_t list;
    bool operator<(const Instant& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  /// An instant to which events can be added. An instant that has lost its place here to another gets no more events.
  /// Later events of the same time have an instant of their own, which comes after it.
  struct Recent {
    Time time = -1;
    std::uint32_t list = 0;
  };

  Recent& recent_of(Time time) noexcept {
    return recent_[(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15U) >> (64 - kRecentBits)];
  }
  std::uint32_t open(Time time) noexcept {
    std::uint32_t number = static_cast<std::uint32_t>(lists_.size());
    if (free_lists_.empty()) {
      lists_.emplace_back();
    } else {
      number = free_lists_.back();
      free_lists_.pop_back();
    }
    lists_[number].first = lists_[number].last = take_part();
    instants_.push_back({time, order_++, number});
    std::push_heap(instants_.begin(), instants_.end());
    return number;
  }
  std::uint32_t take_part() noexcept {
    if (free_parts_.empty()) {
      parts_.emplace_back();
      return static_cast<std::uint32_t>(parts_.size() - 1);
    }
    const std::uint32_t number = free_parts_.back();
    free_parts_.pop_back();
    parts_[number].count = 0;
    return number;
  }

  std::vector<Instant> instants_;  ///< a heap
  std::array<Recent, std::size_t{1} << kRecentBits> recent_;
  std::vector<List> lists_;
  std::vector<std::uint32_t> free_lists_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_parts_;
  std::uint64_t order_ = 0;
};

}  // namespace torii::simulated
