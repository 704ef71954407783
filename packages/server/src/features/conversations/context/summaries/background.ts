/** Maximum conversations processed concurrently, and maximum queued ones. */
const maxRunning = 4;
const maxWaiting = 256;

interface Job {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

export interface Background extends AsyncDisposable {
  /** Starts or queues work under a key; ignored when it is already running or the queue is full. */
  start(key: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Stops the work of a key and waits for its end. */
  stop(key: string): Promise<void>;
}

/** Runs background work, one item per key and a limited number in total, until its owner is disposed. `work` must not reject. */
export function createBackground(): Background {
  const running = new Map<string, Job>();
  const waiting = new Map<string, (signal: AbortSignal) => Promise<void>>();
  let closed = false;

  function run(key: string, work: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    const ended = work(controller.signal).finally(() => {
      running.delete(key);
      const [next] = waiting;
      if (next === undefined || closed) return;
      waiting.delete(next[0]);
      run(...next);
    });
    running.set(key, { controller, ended });
  }

  return {
    start(key, work) {
      if (closed || running.has(key)) return;
      if (running.size < maxRunning) run(key, work);
      else if (waiting.has(key) || waiting.size < maxWaiting) waiting.set(key, work);
    },
    async stop(key) {
      waiting.delete(key);
      const job = running.get(key);
      job?.controller.abort();
      await job?.ended;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      waiting.clear();
      for (const job of running.values()) job.controller.abort();
      await Promise.all([...running.values()].map((job) => job.ended));
    },
  };
}
