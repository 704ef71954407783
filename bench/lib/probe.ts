import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import type { ProbeAnswer, ProbeQuestion } from './proc.ts';

// Loaded with --import before a server to observe: collects garbage on request, and reports how late timers fire.
const stepMs = 5;
let timer: NodeJS.Timeout | undefined;
let delays: number[] = [];
let held: number[] = [];

function watch(): void {
  delays = [];
  held = [];
  let used = process.threadCpuUsage();
  let expected = performance.now() + stepMs;
  timer = setInterval(() => {
    const now = performance.now();
    const delay = Math.max(0, now - expected);
    const { user, system } = process.threadCpuUsage(used);
    used = process.threadCpuUsage();
    delays.push(delay);
    held.push(Math.min(delay, (user + system) / 1000));
    expected = now + stepMs;
  }, stepMs).unref();
}

function answerTo(question: ProbeQuestion): ProbeAnswer {
  if (question === 'watch') watch();
  if (question === 'delays') clearInterval(timer);
  if (question === 'collect') {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    // What one pass finalises, the next one frees.
    for (let pass = 0; pass < 3; pass += 1) collect();
  }
  const isAsked = question === 'delays';
  return { question, delays: isAsked ? delays : [], held: isAsked ? held : [] };
}

if (isMainThread && process.send !== undefined) {
  process.on('message', (question: ProbeQuestion) => process.send?.(answerTo(question)));
  process.channel?.unref();
}
