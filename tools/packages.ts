import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

/** Limits of the installed packages, read from the lock file: how many, none that runs a script, none known to be bad. */
const names = z.record(z.string(), z.string()).default({});
const Entry = z.object({
  version: z.string().optional(),
  link: z.boolean().default(false),
  hasInstallScript: z.boolean().default(false),
  dependencies: names,
  optionalDependencies: names,
  peerDependencies: names,
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().default(false) })).default({}),
});
const Lock = z.object({ packages: z.record(z.string(), Entry) });
const KnownBad = z.array(z.object({ source: z.url(), versions: z.array(z.string()) }));
const AllowScripts = z.object({ allowScripts: z.record(z.string(), z.boolean()).default({}) });

export interface PackageReport {
  /** Packages that every daemon loads, whatever is configured. */
  readonly always: number;
  /** Packages that the product needs at run time. */
  readonly production: number;
  /** Packages of each group that is loaded on demand. */
  readonly groups: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

export interface PackageSources {
  readonly lock: unknown;
  /** The root package.json, which lists refused install scripts. */
  readonly manifest: unknown;
  readonly knownBad: unknown;
}

const limits = { always: 60, production: 200, group: 30 } as const;
/** Groups that are loaded when configured or requested, by the packages that the code imports for them. */
export const onDemand: Readonly<Record<string, readonly string[]>> = {
  'MCP servers': ['@modelcontextprotocol/client'],
  PostgreSQL: ['pg'],
  'the keyring': ['@napi-rs/keyring'],
  'channels of Telegram': ['grammy'],
  'channels of Discord': ['@discordjs/rest', '@discordjs/ws'],
  'channels of Slack': ['@slack/socket-mode', '@slack/web-api'],
  'channels of email': ['imapflow', 'nodemailer', 'postal-mime'],
  'text of documents': ['unpdf', 'saxes'],
  browsers: ['playwright-core'],
};

export function readPackageSources(root: string): PackageSources {
  const json = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'));
  return { lock: json('package-lock.json'), manifest: json('package.json'), knownBad: json('tools/known-bad.json') };
}

export function lookAtPackages(sources: PackageSources): PackageReport {
  const { packages } = Lock.parse(sources.lock);
  const { allowScripts } = AllowScripts.parse(sources.manifest);
  const workspaces = Object.keys(packages).filter((path) => path !== '' && !path.includes('node_modules/'));
  const own = workspaces.filter((path) => path !== 'packages/testkit');
  const lazy = Object.values(onDemand).flat();
  const production = closure(packages, ['', ...own], []);
  const always = closure(packages, ['packages/server', 'packages/cli'], lazy);
  const groups = Object.fromEntries(
    Object.entries(onDemand).map(([group, members]) => [
      group,
      closure(
        packages,
        members.map((name) => `node_modules/${name}`),
        [],
      ).size,
    ]),
  );
  const wrong: string[] = [];
  const atMost = (what: string, count: number, limit: number): void => {
    if (count > limit) wrong.push(`${what}: ${count} packages, ${limit} are the limit`);
  };
  atMost('always loaded', always.size, limits.always);
  atMost('production', production.size, limits.production);
  for (const [group, count] of Object.entries(groups)) atMost(`on demand for ${group}`, count, limits.group);
  const bad = new Map(KnownBad.parse(sources.knownBad).flatMap(({ source, versions }) => versions.map((version) => [version, source] as const)));
  for (const [path, entry] of Object.entries(packages)) {
    const name = nameOf(path);
    if (entry.hasInstallScript && production.has(path)) wrong.push(`${name} of production runs a script when it is installed`);
    else if (entry.hasInstallScript && allowScripts[name] !== false) wrong.push(`${name} has an install script that package.json does not refuse`);
    const source = bad.get(`${name}@${entry.version}`);
    if (source !== undefined) wrong.push(`${name}@${entry.version} is known to be bad: ${source}`);
  }
  for (const [name, allowed] of Object.entries(allowScripts)) if (allowed) wrong.push(`package.json lets ${name} run its install script`);
  return { always: always.size, production: production.size, groups, wrong };
}

type Packages = z.infer<typeof Lock>['packages'];

/** Every package of the registry that these need, themselves included; `without` and what only they need is left out. */
function closure(packages: Packages, from: readonly string[], without: readonly string[]): Set<string> {
  const seen = new Set<string>();
  const waiting = [...from];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const entry = packages[path];
    if (entry === undefined || seen.has(path)) continue;
    seen.add(path);
    const peers = Object.keys(entry.peerDependencies).filter((name) => entry.peerDependenciesMeta[name]?.optional !== true);
    for (const name of [...Object.keys(entry.dependencies), ...Object.keys(entry.optionalDependencies), ...peers]) {
      const found = without.includes(name) ? undefined : resolve(packages, path, name);
      if (found !== undefined) waiting.push(found);
    }
  }
  return new Set([...seen].filter((path) => path.includes('node_modules/') && packages[path]?.link !== true));
}

/** Resolves a package as Node does: in its own node_modules or in those of the folders above it. */
function resolve(packages: Packages, path: string, name: string): string | undefined {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
    const candidate = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (packages[candidate] !== undefined) return candidate;
    if (at === '') return undefined;
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
