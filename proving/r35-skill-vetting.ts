import { Agent } from 'node:http';
import { link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { filesBelow, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall, RpcFailure } from './lib/rpc.ts';
import { badSamples, goodSamples, skillFile, type SkillSample } from './lib/skill-samples.ts';

/**
 * R35: malicious skills are submitted by every kind of caller, with and without `force`, added to the folders by hand, and
 * swapped for good ones after those were vetted. None is written and none is loaded; honest ones are.
 */
export interface R35Report {
  readonly bad: number;
  readonly good: number;
  /** Calls that carried a bad one. */
  readonly attempts: number;
  /** Bad ones that were written, or are used although they are on disk. */
  readonly wrong: readonly string[];
  /** Good ones that were not accepted. */
  readonly blocked: readonly string[];
}

const Listed = z.looseObject({ skills: z.array(z.looseObject({ name: z.string(), state: z.string() })) });
/** Strangers and other agents; an operator may accept dangerous skills, so the operator's calls count without `force`. */
const callers = [
  { agentId: 'helper', force: false },
  { agentId: 'helper', force: true },
  { agentId: 'default', force: false },
] as const;

export async function proveSkillVetting(options: {
  /** Every nth sample; all when absent. */
  readonly each?: number;
  /** Only submits the bad ones. */
  readonly submits?: boolean;
  readonly broken?: string;
}): Promise<R35Report> {
  const chosen = <T>(samples: readonly T[]) => samples.filter((_sample, index) => index % (options.each ?? 1) === 0);
  const bad = chosen(badSamples);
  const good = chosen(goodSamples);
  const home = await makeHome();
  const port = await freePort();
  const agents = Object.fromEntries(['default', 'helper', 'reader'].map((id) => [id, { model: 'local/test-model' }]));
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1', { agents }));
  const laid = await layByHand(home, bad);
  let daemon: Daemon | undefined;
  const agent = new Agent({ keepAlive: true });
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const harness = new Harness({ port, token: daemon.token, agent }, home);
    if (options.submits !== true) {
      for (const { name, state } of await harness.list('reader'))
        if (state === 'active') harness.wrong.push(`${name}: added to the folder by hand, and loaded`);
      if ((await harness.list('reader')).length < Math.min(laid, 20)) harness.wrong.push('skills added to the folder by hand were not even checked');
    }
    for (const sample of bad) await harness.attack(sample);
    if (options.submits !== true) {
      for (const sample of good) await harness.install(sample);
      await harness.changeAfterwards(bad);
    }
    return { bad: bad.length, good: good.length, attempts: harness.attempts, wrong: harness.wrong, blocked: harness.blocked };
  } finally {
    agent.destroy();
    await daemon?.kill();
    await removeHome(home);
  }
}

const skillsOf = (home: string, agentId: string): string => join(home, 'workspaces', agentId, 'skills');

/** Writes samples as a program with access to the folder would, if their paths are valid; and links, which text cannot contain. */
async function layByHand(home: string, samples: readonly SkillSample[]): Promise<number> {
  const root = skillsOf(home, 'reader');
  let count = 0;
  for (const { name, files } of samples) {
    const dir = join(root, name);
    const inside = Object.entries(files).filter(([path]) => !path.includes('\0') && !path.startsWith('/') && join(dir, path).startsWith(`${dir}/`));
    // Without files outside, the sample would be an honest one.
    if (inside.length < Object.keys(files).length) continue;
    for (const [path, content] of inside) {
      await mkdir(dirname(join(dir, path)), { recursive: true, mode: 0o700 });
      await writeFile(join(dir, path), content);
    }
    count += 1;
  }
  for (const name of ['linked-file', 'hard-linked-file']) {
    const dir = join(root, name);
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, 'SKILL.md'), skillFile(name, 'Formats tables.', 'Align the columns.'));
    if (name === 'linked-file') await symlink(join(home, 'config.yaml'), join(dir, 'notes.md'));
    else await link(join(home, 'config.yaml'), join(dir, 'notes.md'));
  }
  await symlink(join(root, 'linked-file'), join(root, 'linked-folder'));
  return count + 3;
}

class Harness {
  attempts = 0;
  readonly wrong: string[] = [];
  readonly blocked: string[] = [];
  readonly #target: Parameters<typeof rpcCall>[0];
  readonly #home: string;

  constructor(target: Parameters<typeof rpcCall>[0], home: string) {
    this.#target = target;
    this.#home = home;
  }

  async list(agentId: string) {
    return Listed.parse(await rpcCall(this.#target, 'skills.list', { agentId })).skills;
  }

  /** Submits a bad one as every caller and checks the disk each time. */
  async attack(sample: SkillSample): Promise<void> {
    const { name, files } = sample;
    const uploaded = { name, files: Object.entries(files).map(([path, content]) => ({ path, content })) };
    const single = Object.keys(files).length === 1 && files['SKILL.md'] !== undefined ? { name, content: files['SKILL.md'] } : undefined;
    for (const caller of callers)
      for (const [method, params] of [
        ['skills.upload', uploaded],
        ['skills.create', single],
        ['skills.update', single],
      ] as const) {
        if (params === undefined) continue;
        this.attempts += 1;
        const target = method === 'skills.update' ? await this.#innocent(caller.agentId) : undefined;
        const before = await this.#onDisk();
        const content = single?.content.replace(`name: ${name}`, `name: ${target}`);
        const outcome = await this.#outcome(method, target === undefined ? { ...params, ...caller } : { name: target, content, ...caller });
        const cell = `${name} by ${method} for ${caller.agentId}${caller.force ? ', forced' : ''}`;
        if (outcome === undefined) this.wrong.push(`${cell}: written`);
        else if (!/\[skill_vet_(?:confirm|rejected):/.test(outcome)) this.wrong.push(`${cell}: refused otherwise: ${outcome.slice(0, 200)}`);
        else if (caller.force && !outcome.includes('[skill_vet_rejected:')) this.wrong.push(`${cell}: force is requested again`);
        if (outcome !== undefined && (await this.#onDisk()) !== before) this.wrong.push(`${cell}: refused, and the disk is another`);
      }
  }

  /** A good one as a stranger's: for another agent, without `force`. */
  async install({ name, files }: SkillSample): Promise<void> {
    const outcome = await this.#outcome('skills.upload', {
      name,
      agentId: 'helper',
      files: Object.entries(files).map(([path, content]) => ({ path, content })),
    });
    if (outcome !== undefined) this.blocked.push(`${name}: ${outcome.slice(0, 200)}`);
    else
      for (const [path, content] of Object.entries(files))
        if ((await readFile(join(skillsOf(this.#home, 'helper'), name, path), 'utf8')) !== content)
          this.wrong.push(`${name}: ${path} differs from the vetted file`);
  }

  /** Good when it was vetted, bad when it would be loaded. */
  async changeAfterwards(samples: readonly SkillSample[]): Promise<void> {
    const plain = samples.filter(({ files }) => Object.keys(files).length === 1 && files['SKILL.md']?.startsWith('---') === true);
    const names: string[] = [];
    for (const { name, files } of plain) {
      // Skills that a broken gate let in are in the way.
      await this.#outcome('skills.delete', { name });
      await rpcCall(this.#target, 'skills.create', { name, content: skillFile(name, 'Formats tables.', 'Align the columns.') });
      await writeFile(join(skillsOf(this.#home, 'default'), name, 'SKILL.md'), files['SKILL.md'] ?? '');
      names.push(name);
    }
    let active: string[] = names;
    for (const until = performance.now() + 15_000; active.length > 0 && performance.now() < until; await pause(100))
      active = (await this.list('default')).filter(({ name, state }) => state === 'active' && names.includes(name)).map(({ name }) => name);
    this.wrong.push(...active.map((name) => `${name}: changed after it was vetted, and still used`));
  }

  /** An existing skill to overwrite. */
  async #innocent(agentId: string): Promise<string> {
    const name = 'innocent';
    const content = skillFile(name, 'Formats tables.', 'Align the columns.');
    if ((await this.list(agentId)).some((skill) => skill.name === name)) await rpcCall(this.#target, 'skills.delete', { name, agentId });
    await rpcCall(this.#target, 'skills.create', { name, content, agentId });
    return name;
  }

  /** Returns the refusal, or undefined when the call succeeded. */
  async #outcome(method: string, params: object): Promise<string | undefined> {
    try {
      await rpcCall(this.#target, method, params);
      return undefined;
    } catch (error) {
      if (error instanceof RpcFailure) return error.message;
      throw error;
    }
  }

  /** Names and contents of everything in the target workspaces. */
  async #onDisk(): Promise<string> {
    const lines: string[] = [];
    for (const agentId of ['default', 'helper'])
      for (const path of await filesBelow(join(this.#home, 'workspaces', agentId)).catch(() => []))
        lines.push(`${path} ${await readFile(path, 'base64')}`);
    return lines.toSorted().join('\n');
  }
}
