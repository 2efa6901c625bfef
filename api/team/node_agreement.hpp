// SPDX-License-Identifier: Apache-2.0
// The agreement of members of one node: words in TeamControl, which every member maps.
#pragma once

#include "api/team/team_agreement.hpp"

namespace torii {

class NodeAgreement final : public TeamAgreement {
 public:
  explicit NodeAgreement(const Membership& members) noexcept;

  void progress() noexcept override {}
  void push_out() noexcept override {}
  FailureSign failure_sign() const noexcept override;
  void claim(Status status, int member, const std::string& text) noexcept override;
  Cause read_cause() noexcept override;
  std::optional<Standing> told_by(int member, std::uint64_t sequence) noexcept override;
  bool has_come_to(int member, std::uint64_t sequence) noexcept override;
  std::uint64_t completed_by(int member) noexcept override;
  std::int64_t looked_ns(int member) noexcept override;
  void publish(const Standing&, std::int64_t, std::int64_t) noexcept override {}
  void tell_end(const Standing&) noexcept override {}
  void put_refusal(const RefusalNotice& notice) noexcept override;
  std::span<const RefusalNotice> refusals_of(int member) noexcept override;
  void put_install(std::uint64_t number, std::uint64_t word) noexcept override;
  std::uint64_t install_word(int member, std::uint64_t number) noexcept override;
  bool words_have_left() const noexcept override { return true; }
  void put_epoch(std::uint64_t epoch) noexcept override;
  bool has_reached(int member, std::uint64_t epoch) noexcept override;
  void leave() noexcept override;
  bool has_departed(int member) noexcept override;
  std::optional<std::uint64_t> departed_after(int member) noexcept override;
  void depart(std::uint64_t touched_bytes) noexcept override;
  std::vector<PutOwner> take_puts() override { return {}; }
  std::optional<bool> decide_split(bool agreed) noexcept override;
  void choose_survivors(const SurvivorsOffer& own, std::vector<Survivor>& chosen) override;
  void tell_made(Status status, const std::string& text) noexcept override;
  std::optional<MadeReport> made_by(int member) noexcept override;
  std::int64_t pass_on_ns() const noexcept override { return 0; }

 private:
  void publish_offer(const SurvivorsOffer& own) noexcept;
  const SurvivorsRecord& decide_survivors(Waiting& waiting) const;

  const Membership& members_;
  TeamControl& own_;
  TeamControl& first_;        ///< holds the records of failure, splits and survivors
  std::uint32_t splits_ = 0;  ///< that all members agreed on
};

}  // namespace torii
