import { createHash } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { freePort } from '@gatehouse/testkit/free-port';
import { parse } from 'yaml';
import * as z from 'zod';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome } from './lib/home.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { RpcFailure, rpcCall } from './lib/rpc.ts';

/**
 * CONFIG: random changes of config.yaml, by calls of two clients, by hand and by rollbacks, with kills between each pair of steps. The
 * daemon always starts with a file that can be used; what was acknowledged or written by hand is a version; versions have numbers without
 * a gap; a rollback restores the bytes; nothing that was refused is in the file.
 */
export interface ConfigReport {
  readonly patches: number;
  readonly kills: Readonly<Record<string, number>>;
  readonly edits: number;
  readonly rollbacks: number;
  readonly refused: number;
  readonly versions: number;
  readonly wrong: readonly string[];
}

export const killPoints = [
  'before the version',
  'after the version',
  'before the rename',
  'after the rename',
  'after the mark',
  'after the reload',
] as const;
type KillPoint = (typeof killPoints)[number];

const name = fc.stringMatching(/^[a-z]{1,6}$/);
/** Changes that a start accepts, of every shape: values, lists, sections, entries of records. */
const good = fc.oneof(
  fc.record({ path: fc.constant('logging.level'), value: fc.constantFrom('debug', 'info', 'warn', 'error', null) }),
  fc.record({ path: name.map((module) => `logging.modules.${module}`), value: fc.constantFrom('debug', 'warn', null) }),
  fc.record({
    path: fc.constant('gateway.rateLimit'),
    value: fc.record({ windowMs: fc.integer({ min: 1, max: 99 }), maxRequests: fc.constant(10_000_000) }),
  }),
  fc.record({ path: fc.constant('gateway.allowedHosts'), value: fc.array(name, { maxLength: 3 }) }),
  fc.record({
    path: name.map((id) => `agents.${id}`),
    value: fc.oneof(fc.record({ name: fc.string({ minLength: 1, maxLength: 20 }), maxSteps: fc.integer({ min: 1, max: 99 }) }), fc.constant(null)),
  }),
  fc.record({ path: fc.constant('agents.default.maxSteps'), value: fc.integer({ min: 1, max: 99 }) }),
  fc.record({ path: fc.constant('webhooks.presets'), value: fc.subarray(['github', 'gmail']) }),
  fc.record({ path: fc.constant('budgets'), value: fc.constant({}) }),
);
const bad = fc.oneof(
  fc.record({ path: name.map((key) => `gateway.${key}x`), value: fc.integer() }),
  fc.record({ path: name.map((key) => `${key}x.y`), value: fc.integer() }),
  fc.record({ path: fc.constant('gateway.port'), value: fc.constantFrom(-1, 70_000, 'many', []) }),
  fc.record({ path: fc.constant('models.default'), value: fc.constant('nobody/nothing') }),
  fc.record({ path: fc.constant('providers.local.apiKey'), value: fc.constant('[REDACTED]') }),
);
const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('patch' as const), change: good }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('bad' as const), change: bad }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pair' as const), change: good, other: good }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('edit' as const), text: name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rollback' as const), back: fc.nat(20) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

const History = z.object({
  entries: z.array(z.object({ sha: z.string(), version: z.number(), from: z.string(), metadata: z.object({ user: z.string() }) })),
});
const Changed = z.object({ digest: z.string(), version: z.number() });

export async function proveConfigChanges(options: {
  readonly patches: number;
  readonly seed: number;
  readonly broken?: string;
  /** The only point of kills. */
  readonly only?: KillPoint;
  readonly progress?: (line: string) => void;
}): Promise<ConfigReport> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  try {
    const trial = new Trial(home, options);
    await writeFile(join(home, 'config.yaml'), `# written by hand\n${JSON.stringify(proofConfig(provider.url), null, 2)}\n# the end\n`, {
      mode: 0o600,
    });
    return await trial.run();
  } finally {
    await provider.close();
    await removeHome(home);
  }
}

class Trial {
  readonly #home: string;
  readonly #options: Parameters<typeof proveConfigChanges>[0];
  readonly #wrong: string[] = [];
  /** Digests that must be versions: acknowledged, or written by hand and seen by the daemon. */
  readonly #kept = new Set<string>();
  /** Digest of an edit by hand that the daemon may not have noticed: the next edit replaces it. */
  #unnoticed: string | undefined;
  /** Digests of edits by hand: no other version comes from one. */
  readonly #byHand = new Set<string>();
  readonly #kills: Record<string, number> = {};
  #patches = 0;
  #edits = 0;
  #rollbacks = 0;
  #refused = 0;
  #versions = 0;

  constructor(home: string, options: Parameters<typeof proveConfigChanges>[0]) {
    this.#home = home;
    this.#options = options;
  }

  async run(): Promise<ConfigReport> {
    const { patches, seed, only, progress } = this.#options;
    const steps = fc.sample(step, { numRuns: patches * 2, seed });
    this.#byHand.add(digestOf(await this.#text()));
    for (let life = 0; this.#patches < patches && steps.length > 0; life++) {
      const point = only ?? killPoints[life % killPoints.length] ?? 'after the version';
      // Some lives are long, so that the history is too.
      const after = 1 + ((seed + life * 7) % 9);
      const daemon = await this.#start(point, after);
      if (daemon === undefined) break;
      this.#unnoticed = undefined;
      await this.#check(daemon, `life ${life}, after a kill ${point}`);
      let isKilled = false;
      while (!isKilled && this.#patches < patches) {
        const next = steps.shift();
        if (next === undefined) break;
        isKilled = !(await this.#step(daemon, next));
      }
      if (isKilled) this.#kills[point] = (this.#kills[point] ?? 0) + 1;
      await daemon.kill();
      await ageBoots(this.#home);
      if (life % 10 === 9) progress?.(`CONFIG: ${this.#patches} patches, ${life + 1} lives, ${this.#wrong.length} wrong`);
      if (this.#wrong.length > 20) break;
    }
    const last = await this.#start(undefined, 1);
    if (last !== undefined) {
      await this.#check(last, 'at the end');
      await this.#checkBytes(last);
      await last.kill();
    }
    return {
      patches: this.#patches,
      kills: this.#kills,
      edits: this.#edits,
      rollbacks: this.#rollbacks,
      refused: this.#refused,
      versions: this.#versions,
      wrong: this.#wrong,
    };
  }

  async #start(point: KillPoint | undefined, after: number): Promise<Daemon | undefined> {
    const { broken } = this.#options;
    try {
      return await startDaemon({
        home: this.#home,
        port: await freePort(),
        broken: ['killed-in-config', ...(broken === undefined ? [] : [broken])],
        env: { ...(point !== undefined && { KILL_AT: point, KILL_AFTER: String(after) }) },
        readyTimeoutMs: 60_000,
      });
    } catch (error) {
      // An edit by hand that nothing had noticed becomes a version in a start, which the kill then ends.
      if (point !== undefined && String(error).includes('ended with SIGKILL')) {
        this.#kills[point] = (this.#kills[point] ?? 0) + 1;
        await ageBoots(this.#home);
        return this.#start(undefined, 1);
      }
      this.#wrong.push(`the daemon does not start: ${String(error).slice(0, 400)}`);
      return undefined;
    }
  }

  /** Returns false when the daemon was killed. */
  async #step(daemon: Daemon, given: Step): Promise<boolean> {
    switch (given.kind) {
      case 'patch':
        return this.#patch(daemon, given.change);
      case 'pair': {
        const alive = await Promise.all([this.#patch(daemon, given.change), this.#patch(daemon, given.other)]);
        return alive.every(Boolean);
      }
      case 'bad': {
        const before = await this.#text();
        const isAlive = await this.#call(daemon, { ...given.change, confirm: true }, () =>
          this.#wrong.push(`accepted: ${JSON.stringify(given.change)}`),
        );
        if ((await this.#text()) !== before) this.#wrong.push(`a refused change was written: ${JSON.stringify(given.change)}`);
        this.#refused += 1;
        return isAlive;
      }
      case 'edit': {
        const text = `${await this.#text()}# ${given.text} ${this.#edits}\n`;
        // As editors do, so that nothing reads a part of it.
        await writeFile(join(this.#home, 'draft'), text, { mode: 0o600 });
        await rename(join(this.#home, 'draft'), join(this.#home, 'config.yaml'));
        this.#edits += 1;
        if (this.#unnoticed !== undefined) this.#kept.delete(this.#unnoticed);
        this.#unnoticed = digestOf(text);
        this.#byHand.add(this.#unnoticed);
        this.#kept.add(this.#unnoticed);
        return true;
      }
      case 'rollback': {
        const shas = [...this.#kept];
        const sha = shas.at(-1 - (given.back % Math.max(1, shas.length)));
        if (sha === undefined) return true;
        this.#rollbacks += 1;
        return this.#call(daemon, { sha, confirm: true }, () => this.#sameBytes(sha), 'config.rollback');
      }
    }
  }

  async #patch(daemon: Daemon, change: { readonly path: string; readonly value: unknown }): Promise<boolean> {
    this.#patches += 1;
    return this.#call(daemon, { ...change, confirm: true }, (result) => this.#kept.add(Changed.parse(result).digest));
  }

  async #call(daemon: Daemon, params: object, done: (result: unknown) => unknown, method = 'config.set'): Promise<boolean> {
    try {
      await done(await rpcCall(daemon, method, params));
      this.#unnoticed = undefined;
      return true;
    } catch (error) {
      if (!(error instanceof RpcFailure)) return false;
      // Nothing may have noticed an edit by hand yet, which is not a version then.
      const isExpected = /validation failed|Unknown config section|redaction marker|Invalid SHA/.test(error.message);
      if (!isExpected) this.#wrong.push(`refused: ${JSON.stringify(params)}: ${error.message}`);
      return true;
    }
  }

  async #sameBytes(sha: string): Promise<void> {
    const found = digestOf(await this.#text());
    if (found !== sha) this.#wrong.push(`a rollback to ${sha.slice(0, 8)} has written ${found.slice(0, 8)}`);
    else this.#kept.add(sha);
  }

  async #check(daemon: Daemon, when: string): Promise<void> {
    const say = (fact: string): void => void this.#wrong.push(`${when}: ${fact}`);
    try {
      const text = await this.#text();
      const read = z.object({ fault: z.string().optional(), digest: z.string() }).parse(await rpcCall(daemon, 'config.read', { section: 'routing' }));
      if (read.fault !== undefined) return say(`the file cannot be used: ${read.fault.slice(0, 200)}`);
      parse(text);
      const { entries } = History.parse(await rpcCall(daemon, 'config.history', { limit: 200 }));
      this.#versions = Math.max(this.#versions, entries[0]?.version ?? 0);
      entries.forEach(({ version }, index) => {
        if (version !== (entries[0]?.version ?? 0) - index) say(`version ${version} is at place ${index}`);
      });
      if (entries[0]?.sha !== digestOf(text)) say('the newest version is not the file');
      const known = new Set(entries.map(({ sha }) => sha));
      // The history shows two hundred.
      if (entries.at(-1)?.version === 1)
        for (const sha of this.#kept)
          if (!known.has(sha)) say(`${sha.slice(0, 8)} was acknowledged or written by hand, and is missing in the history`);
      for (const { from, sha, version } of entries)
        if (from === 'file' && !this.#byHand.has(sha)) say(`version ${version} of a call counts as an edit by hand`);
    } catch (error) {
      say(String(error).slice(0, 300));
    }
  }

  /** Goes back to some versions, whose bytes are known by their digests, and to the newest one again. */
  async #checkBytes(daemon: Daemon): Promise<void> {
    const { entries } = History.parse(await rpcCall(daemon, 'config.history', { limit: 200 }));
    for (const { sha } of [...entries.slice(1, 6), ...entries.slice(0, 1)])
      await this.#call(daemon, { sha, confirm: true }, () => this.#sameBytes(sha), 'config.rollback');
  }

  async #text(): Promise<string> {
    const text = await readFile(join(this.#home, 'config.yaml'), 'utf8');
    return text;
  }
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
