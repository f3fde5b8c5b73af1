// A launch on a CPU: a grid of workgroups, one after the other. Threads that meet at barriers are real ones, others
// run in turn. This comes before the words of a language, some of which are words of C++ too.
#define MEETS
#include <barrier>
#include <thread>
#include <vector>

struct Size { unsigned x, y, z; };
static std::barrier<>* meeting;
static void meet() { meeting->arrive_and_wait(); }

template <class Run> static void launch(Size grid, Size group, bool meets, Run run) {
  std::barrier<> all(group.x * group.y * group.z);
  meeting = &all;
  for (unsigned gz = 0; gz < grid.z; gz++) for (unsigned gy = 0; gy < grid.y; gy++) for (unsigned gx = 0; gx < grid.x; gx++) {
    std::vector<std::thread> threads;
    for (unsigned lz = 0; lz < group.z; lz++) for (unsigned ly = 0; ly < group.y; ly++) for (unsigned lx = 0; lx < group.x; lx++) {
      Size g{gx, gy, gz}, l{lx, ly, lz};
      if (meets) threads.emplace_back([=] { run(g, l); });
      else run(g, l);
    }
    for (auto& thread : threads) thread.join();
  }
}
