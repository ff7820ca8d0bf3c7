// NamePool: one copy of every kernel name and label that a report shows.
#ifndef ASSAY_HAZARD_NAME_POOL_H_
#define ASSAY_HAZARD_NAME_POOL_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace assay::hazard {

class NamePool final {
 public:
  // Lives as long as the pool, wherever the pool's owner moves.
  std::string_view Intern(std::string_view name) {
    auto found = names_.find(name);
    if (found == names_.end()) found = names_.emplace(name).first;
    return *found;
  }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_NAME_POOL_H_
