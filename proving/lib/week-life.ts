import { cpSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createStepClock, startTestServer, type StepClock, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import type { Generation, World } from './week-world.ts';

/** A server over its crashes, stops and starts, all in this process, on one home that persists. */
export interface Life {
  readonly server: () => TestServer;
  /** Leaps like that of a sleeping machine. */
  readonly clock: () => StepClock;
  readonly generation: () => Generation;
  /** Lets all due work end, or gives up after so many checks: a call may hang. */
  settle(looks?: number): Promise<void>;
  /** The next start finds what is committed at this moment; nothing that the server does from now on counts. */
  crash(): Promise<void>;
  /** Stops with a drain. */
  stop(): Promise<void>;
  start(atMs: number): Promise<void>;
  /** The database, once the server is stopped. */
  readonly file: () => string;
  remove(): Promise<void>;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export async function createLife(
  world: World,
  config: NonNullable<TestServerOptions['config']>,
  prepare: (home: string) => Promise<void>,
): Promise<Life> {
  const newHome = () => mkdtemp(join(tmpdir(), 'gatehouse-week-'));
  let home = await newHome();
  await prepare(home);
  let generation: Generation = { alive: false };
  let clock = createStepClock(0);
  let server: TestServer | undefined;
  let looking: DatabaseSync | undefined;
  const file = () => join(home, 'data', 'gatehouse.db');
  const running = (): TestServer => {
    if (server === undefined) throw new Error('the server is not running');
    return server;
  };

  /** The clock of a server whose time passes only while something waits for it. */
  async function passUntil(work: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = work.finally(() => (isOver = true));
    over.catch(() => undefined);
    while (!isOver) {
      clock.leap(200);
      await pause(1);
    }
    await over;
  }

  function dueNow(): number {
    const nowMs = clock.now();
    const row = looking
      ?.prepare(
        `SELECT (SELECT count(*) FROM work_item WHERE state = 'running' OR (state = 'accepted' AND not_before_ms <= ?))
          + (SELECT count(*) FROM cron_job WHERE state = 'scheduled' AND active_execution_id IS NULL AND due_at_ms <= ?) AS due`,
      )
      .get(nowMs, nowMs);
    return Number(row?.['due'] ?? 0);
  }

  async function end(): Promise<void> {
    looking?.close();
    looking = undefined;
    const ending = running();
    server = undefined;
    await passUntil(Promise.resolve(ending[Symbol.asyncDispose]()));
  }

  return {
    server: running,
    clock: () => clock,
    generation: () => generation,
    file,
    async settle(looks = 40) {
      for (let look = 0, idle = 0; look < looks && idle < 2; look += 1) {
        await pause(look < 4 ? 1 : 2);
        // Work that has just started may still be in flight; what waits for a second check is woken by the clock.
        idle = dueNow() === 0 ? idle + 1 : 0;
        clock.leap(look < 8 ? 100 : 2_000);
      }
    },
    async crash() {
      generation.alive = false;
      const [before, next] = [home, await newHome()];
      await mkdir(join(next, 'data'), { recursive: true });
      const live = new DatabaseSync(file(), { timeout: 5_000 });
      live.exec(`VACUUM INTO '${join(next, 'data', 'gatehouse.db')}'`);
      live.close();
      cpSync(before, next, { recursive: true, filter: (path) => !/^gatehouse\.db|\.(?:lock|sock)$/.test(path.split(sep).at(-1) ?? '') });
      await end();
      home = next;
      await rm(before, { recursive: true, force: true });
    },
    async stop() {
      await passUntil(running().server.drain());
      generation.alive = false;
      await end();
    },
    async start(atMs) {
      clock = createStepClock(atMs);
      generation = { alive: true };
      server = await startTestServer({
        homeDir: home,
        clock,
        config,
        provider: { answer: world.answer(generation), journal: 0 },
        tools: world.tools(generation),
      });
      looking = new DatabaseSync(file(), { readOnly: true, timeout: 5_000 });
    },
    async remove() {
      if (server !== undefined) await end();
      await rm(home, { recursive: true, force: true });
    },
  };
}
