// A launch on a CPU: a grid of workgroups, one after the other. Threads that meet at barriers are real ones, others
// run in turn. This comes before the words of a language, some of which are words of C++ too.
#define MEETS
#include <barrier>
#include <thread>
#include <vector>

struct Size { unsigned x, y, z; };
static std::barrier<>* meeting;
static void meet() { meeting->arrive_and_wait(); }
// Threads meet in groups of 32 too, in the order of their places.
static std::vector<std::barrier<>*> warps;
static thread_local unsigned thread_number;
static void meet_in_warp() { warps[thread_number / 32]->arrive_and_wait(); }

template <class Run> static void launch(Size grid, Size group, bool meets, Run run) {
  std::barrier<> all(group.x * group.y * group.z);
  meeting = &all;
  unsigned count = group.x * group.y * group.z;
  for (auto* warp : warps) delete warp;
  warps.clear();
  for (unsigned n = 0; n < count; n += 32) warps.push_back(new std::barrier<>(count - n < 32 ? count - n : 32));
  for (unsigned gz = 0; gz < grid.z; gz++) for (unsigned gy = 0; gy < grid.y; gy++) for (unsigned gx = 0; gx < grid.x; gx++) {
    std::vector<std::thread> threads;
    for (unsigned lz = 0; lz < group.z; lz++) for (unsigned ly = 0; ly < group.y; ly++) for (unsigned lx = 0; lx < group.x; lx++) {
      Size g{gx, gy, gz}, l{lx, ly, lz};
      unsigned number = lx + group.x * (ly + group.y * lz);
      if (meets) threads.emplace_back([=] { thread_number = number; run(g, l); });
      else run(g, l);
    }
    for (auto& thread : threads) thread.join();
  }
}
