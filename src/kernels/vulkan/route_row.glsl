// RouteRow(): softmax over the first `experts` of route_logits and the largest of them, by the first
// 32 lanes of a workgroup, all of which comes here. ROUTE_OUT(j, id, weight) takes the results.
#define MAX_EXPERTS 1024

shared float route_logits[MAX_EXPERTS];
shared float route_best[32];
shared uint route_ids[32];
shared float route_chosen[MAX_EXPERTS];
shared uint route_chosen_ids[MAX_EXPERTS];

// Of all lanes of the first group, the largest value and, of equal ones, the lowest id. Every
// invocation of the workgroup comes here.
void RouteBest(bool mine, inout float best, inout uint id) {
  if (gl_SubgroupSize >= 32u) {
    [[unroll]] for (uint distance = 16u; distance > 0u; distance >>= 1) {
      const float other = subgroupShuffleXor(best, distance);
      const uint other_id = subgroupShuffleXor(id, distance);
      if (other > best || (other == best && other_id < id)) {
        best = other;
        id = other_id;
      }
    }
    return;
  }
  if (mine) {
    route_best[Lane()] = best;
    route_ids[Lane()] = id;
  }
  barrier();
  best = route_best[0];
  id = route_ids[0];
  for (uint l = 1u; l < 32u; ++l) {
    const float other = route_best[l];
    if (other > best || (other == best && route_ids[l] < id)) {
      best = other;
      id = route_ids[l];
    }
  }
  barrier();
}

void RouteRow(uint experts, uint used, bool normalise) {
  const uint lane = Lane();
  const bool mine = Group() == 0u;
  float top = -Infinity();
  for (uint i = lane; i < experts; i += 32u) top = max(top, route_logits[i]);
  top = LaneMax(top);
  barrier();
  float sum = 0.0;
  if (mine) {
    for (uint i = lane; i < experts; i += 32u) {
      const float e = Exp(Sub(route_logits[i], top));
      route_logits[i] = e;
      sum = Add(sum, e);
    }
  }
  sum = LaneSum(sum);
  if (mine) {
    for (uint i = lane; i < experts; i += 32u) {
      precise float p = route_logits[i] / sum;
      route_logits[i] = p;
    }
  }
  // Of the first group, so that all agree.
  if (mine && lane == 0u) route_best[0] = sum;
  barrier();
  const bool broken = IsNaN(route_best[0]);
  barrier();
  float chosen = 0.0;
  for (uint j = 0u; j < used; ++j) {
    // Probabilities are at least 0, and chosen ones become -1.
    float best = -0.5;
    uint id = experts;
    if (mine) {
      for (uint i = lane; i < experts; i += 32u) {
        if (route_logits[i] > best) {
          best = route_logits[i];
          id = i;
        }
      }
    }
    RouteBest(mine, best, id);
    if (broken) {
      best = NaN();
      id = j;
    }
    chosen = j == 0u ? best : Add(chosen, best);
    if (mine && lane == 0u) {
      route_chosen[j] = best;
      route_chosen_ids[j] = id;
    }
    // By the lane that alone reads it.
    if (mine && lane == (id & 31u)) route_logits[id] = -1.0;
  }
  barrier();
  if (!mine) return;
  for (uint j = lane; j < used; j += 32u) {
    precise float weight = normalise ? route_chosen[j] / chosen : route_chosen[j];
    ROUTE_OUT(j, route_chosen_ids[j], weight);
  }
}
