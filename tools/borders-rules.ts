/**
 * The import directions of the house as data. A module belongs to the first zone whose pattern fits its path;
 * it may import its own zone and the zones listed in `may`. What is not listed is forbidden.
 */
export interface Zone {
  readonly name: string;
  /** Matches a path relative to the repository root, with forward slashes. */
  readonly files: RegExp;
  /** Zones that it may import, besides itself. */
  readonly may: readonly string[];
  /** Zones of which only types may be taken. */
  readonly mayTypes?: readonly string[];
  /** When given, the only packages from outside the repository; `node:` counts as one. */
  readonly external?: readonly string[];
}

const below = ['contract', 'kernel'];

export const zones: readonly Zone[] = [
  { name: 'contract', files: /^packages\/contract\/src\//, may: [], external: ['zod'] },
  { name: 'client', files: /^packages\/client\/src\//, may: [], mayTypes: ['contract'], external: [] },
  { name: 'cli', files: /^packages\/cli\/src\//, may: ['contract', 'client'] },
  {
    name: 'dashboard',
    files: /^packages\/dashboard\/(src\/|vite\.config\.ts$)/,
    may: ['client'],
    mayTypes: ['contract'],
    external: ['@xyflow/react', 'marked', 'react', 'react-dom/client', 'vite'],
  },
  { name: 'testkit', files: /^packages\/testkit\/src\//, may: ['contract', 'client', 'server'] },
  { name: 'kernel', files: /^packages\/server\/src\/kernel\//, may: ['contract'] },
  { name: 'llm', files: /^packages\/server\/src\/llm\//, may: below },
  { name: 'channels', files: /^packages\/server\/src\/channels\//, may: below },
  { name: 'runtime', files: /^packages\/server\/src\/runtime\//, may: [...below, 'llm', 'channels'] },
  { name: 'features', files: /^packages\/server\/src\/features\//, may: [...below, 'llm', 'channels', 'runtime'] },
  { name: 'gateway', files: /^packages\/server\/src\/gateway\//, may: [...below, 'llm', 'runtime'], mayTypes: ['features'] },
  { name: 'transactions', files: /^packages\/server\/src\/transactions\//, may: [...below, 'runtime', 'features'], mayTypes: ['llm'] },
  {
    name: 'wiring',
    files: /^packages\/server\/src\/(wiring\/|server(-handle)?\.ts$|config-schema\.ts$|version\.ts$|storage-worker\.ts$)/,
    may: [...below, 'llm', 'channels', 'runtime', 'features', 'gateway', 'transactions'],
  },
  {
    name: 'server',
    files: /^packages\/server\/src\/(process\/|[^/]+$)/,
    may: [...below, 'llm', 'channels', 'runtime', 'features', 'gateway', 'wiring', 'transactions'],
  },
  { name: 'suites', files: /^(e2e|bench|proving|tools|examples)\/|^vitest\.config\.ts$/, may: ['contract', 'client', 'cli', 'testkit', 'server'] },
];

/** What a module may import beyond its zone, each with its reason. */
export const exceptions: readonly { readonly from: RegExp; readonly to: RegExp; readonly reason: string }[] = [
  {
    from: /^(e2e|bench|proving)\//,
    to: /^packages\/testkit\/src\/(fake-provider|certificates|schedule-cases)\.ts$/,
    reason: 'suites that run the built daemon do not load the server, which the entry of the testkit would',
  },
  { from: /^bench\/micro\//, to: /^packages\/server\/src\/(kernel|llm|features\/knowledge\/memory)\//, reason: 'measures parts alone' },
  {
    from: /^bench\/lib\/fill\.ts$/,
    to: /^packages\/server\/src\/(kernel|features\/conversations\/sessions)\//,
    reason: 'fills the database of a stopped daemon',
  },
  {
    from: /^proving\/(r38-upgrade|lib\/old-home)\.ts$/,
    to: /^packages\/server\/src\/(kernel\/db\/sqlite\/open-files|transactions\/registry)\.ts$/,
    reason: 'makes databases of earlier schemas by the migrations themselves',
  },
  {
    from: /^proving\/(r7-claimed-once|lib\/cron-claimer)\.ts$/,
    to: /^packages\/server\/src\/(kernel\/db\/sqlite\/inline|transactions\/(registry|claim-occurrence|finish-occurrence)|features\/unattended\/(cron|durable)\/[a-z/-]+)\.ts$/,
    reason: 'several processes on one database are what the daemon, which locks its folder, does not let happen',
  },
  {
    from: /^proving\/lib\/stale-(owner|work)\.ts$/,
    to: /^packages\/server\/src\/(kernel\/db\/(db|sqlite\/inline)|transactions\/[a-z-]+|features\/[a-z/-]+\/(api|store))\.ts$/,
    reason: 'two owners of one piece of work on one database are what the daemon, which locks its folder, does not let happen',
  },
  {
    from: /^proving\/lib\/outward-ground\.ts$/,
    to: /^packages\/server\/src\/kernel\/egress\.ts$/,
    reason: 'makes requests for archives as the product does, to a site in the place of GitHub',
  },
  {
    from: /^packages\/server\/src\/transactions\/.*\.test\.ts$/,
    to: /^packages\/server\/src\/llm\/models?\.ts$/,
    reason: 'opens whole turns, which name their model',
  },
  { from: /^tools\/gen\.ts$/, to: /^packages\/(contract|server|cli)\/src\//, reason: 'writes the documents from what no entry exports' },
];

/** A test stands in the zone of the code beside it and may also use these. */
export const testsMayImport: readonly string[] = ['testkit', 'client', 'contract'];

/** Tests of these zones use the real features in place of mocks. */
export const testsTakeFeatures: readonly string[] = ['features', 'gateway'];

/** Below this number of modules the walk itself has gone wrong, and green would mean nothing. */
export const leastModules = 300;
