/** What `cpuGrowth` stays below for linear time: there it is about 8, and 64 for quadratic time. */
export const linear = 24;

const rounds = 5;
const leastMicros = 2_000;

async function cpuMicros(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs += 1) {
    await work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system > leastMicros) return (user + system) / runs;
  }
}

/**
 * Returns by how much the CPU time of this thread grows when the size is eight times as large. Other load on the machine does not count, and each
 * time is the least of up to five rounds, so that a test may expect it to be below `linear` anywhere.
 */
export async function cpuGrowth(size: number, work: (size: number) => unknown): Promise<number> {
  await work(size);
  let small = Infinity;
  let large = Infinity;
  for (let round = 0; round < rounds && !(large / small < linear); round += 1) {
    small = Math.min(small, await cpuMicros(() => work(size)));
    large = Math.min(large, await cpuMicros(() => work(size * 8)));
  }
  return large / small;
}
