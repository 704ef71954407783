import { posix } from 'node:path';

/** Tests of what runs from the bundle or is read as a file: no import leads from them to what they test. */
const rules: readonly { readonly changed: RegExp; readonly tests: readonly string[] }[] = [
  { changed: /^packages\/contract\/src\//, tests: ['tools/gen.test.ts'] },
  { changed: /^(CONTRIBUTING\.md|packages\/contract\/src\/(methods\/agents|spec-surface\.test)\.ts)$/, tests: ['tools/recipe.test.ts'] },
  { changed: /^(package|package-lock)\.json$/, tests: ['tools/packages.test.ts', 'tools/ensure.test.ts'] },
  { changed: /^tools\/(build|build-dashboard|ensure)\.mjs$/, tests: ['tools/ensure.test.ts', 'e2e/first-start.test.ts'] },
  { changed: /^(README\.md|docs\/guide\/start\.md)$/, tests: ['e2e/first-start.test.ts'] },
  { changed: /^docs\/guide\/agents\.md$/, tests: ['e2e/guide-agents.test.ts'] },
  { changed: /^docs\/guide\/delegation\.md$/, tests: ['e2e/guide-delegation.test.ts'] },
  { changed: /^docs\/guide\/proxies\.md$/, tests: ['e2e/proxies.test.ts'] },
  { changed: /^packages\/dashboard\/src\/pages\/(agent|agents|approvals)\//, tests: ['e2e/dashboard-agents.test.ts'] },
  { changed: /^packages\/dashboard\/src\/(pages\/settings|ui\/schema)\//, tests: ['e2e/dashboard-settings.test.ts'] },
  { changed: /^packages\/dashboard\/src\/pages\/(graphs|runs)\//, tests: ['e2e/dashboard-delegation.test.ts'] },
  { changed: /^packages\/dashboard\/src\/pages\/(memory|conversations)\//, tests: ['e2e/dashboard-remembering.test.ts'] },
  { changed: /^packages\/dashboard\/src\/pages\/(schedule|webhooks|inbox)\//, tests: ['e2e/dashboard-schedule.test.ts'] },
  { changed: /^packages\/dashboard\//, tests: ['e2e/dashboard.test.ts'] },
  { changed: /^packages\/cli\/src\//, tests: ['e2e/command-line.test.ts'] },
  { changed: /^packages\/client\/src\//, tests: ['e2e/event-clients.test.ts'] },
  { changed: /^packages\/server\/src\/(process\/|main\.ts$)/, tests: ['e2e/life-cycle.test.ts', 'e2e/first-start.test.ts'] },
  { changed: /^packages\/server\/src\/gateway\/routes\/v1-/, tests: ['e2e/v1-routes.test.ts', 'e2e/openai-package.test.ts'] },
  { changed: /^packages\/server\/src\/gateway\/routes\/responses\//, tests: ['e2e/responses-clients.test.ts'] },
  { changed: /^packages\/server\/src\/gateway\/routes\/messages\//, tests: ['e2e/anthropic-package.test.ts'] },
  { changed: /^packages\/server\/src\/gateway\/rpc\//, tests: ['e2e/rpc-clients.test.ts'] },
  { changed: /^packages\/server\/src\/gateway\/mcp\//, tests: ['e2e/mcp-clients.test.ts'] },
  { changed: /^packages\/server\/src\/features\/agents\/mcp\//, tests: ['e2e/mcp-servers.test.ts'] },
];

const isTest = (file: string): boolean => /\.test\.tsx?$/.test(file);

/** What the selection starts from. */
export interface Change {
  /** Changed files, relative to the root. */
  readonly files: readonly string[];
  /** Modules that each module loads. */
  readonly graph: ReadonlyMap<string, readonly string[]>;
  /** Proofs whose broken build replaces a text of a module, by module. */
  readonly proofs: ReadonlyMap<string, readonly string[]>;
}

/**
 * Lists the tests that a change touches, the nearest first: changed tests, those that rules and broken builds name, then those that load a changed
 * module, in the order of the distance between their folders.
 */
export function relatedTests({ files, graph, proofs }: Change): string[] {
  const named = files.flatMap((file) => [
    ...rules.filter(({ changed }) => changed.test(file)).flatMap(({ tests }) => tests),
    ...(proofs.get(file) ?? []),
  ]);
  const loading = dependentsOf(files, graph);
  const distance = (test: string): number => Math.min(...files.map((file) => stepsBetween(posix.dirname(test), posix.dirname(file))));
  const byDistance = [...loading].filter(isTest).toSorted((a, b) => distance(a) - distance(b) || (a < b ? -1 : 1));
  const [near, far] = [byDistance.filter((test) => distance(test) <= 1), byDistance.filter((test) => distance(test) > 1)];
  return [...new Set([...files.filter((file) => isTest(file) && graph.has(file)), ...near, ...named.filter((test) => graph.has(test)), ...far])];
}

/** Takes tests from the front of the list for as long as they fit, and at least one. */
export function withinTime(tests: readonly string[], budgetMs: number, msOf: (test: string) => number): string[] {
  let left = budgetMs;
  const taken = tests.filter((test, at) => {
    const ms = msOf(test);
    if (at > 0 && ms > left) return false;
    left -= ms;
    return true;
  });
  return taken;
}

function dependentsOf(files: readonly string[], graph: Change['graph']): ReadonlySet<string> {
  const importers = new Map<string, string[]>();
  for (const [file, imports] of graph) for (const target of imports) importers.set(target, [...(importers.get(target) ?? []), file]);
  const found = new Set<string>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop())
    for (const importer of importers.get(file) ?? [])
      if (!found.has(importer)) {
        found.add(importer);
        waiting.push(importer);
      }
  return found;
}

function stepsBetween(from: string, to: string): number {
  const path = posix.relative(from, to);
  return path === '' ? 0 : path.split('/').length;
}
