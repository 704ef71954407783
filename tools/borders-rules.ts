/**
 * The import directions of the project as data. A module belongs to the first zone whose pattern matches its path;
 * it may import its own zone and the zones listed in `may`. All other imports are forbidden.
 */
export interface Zone {
  readonly name: string;
  /** Matches a path relative to the repository root, with forward slashes. */
  readonly files: RegExp;
  /** Zones that it may import, in addition to itself. */
  readonly may: readonly string[];
  /** Zones of which only types may be imported. */
  readonly mayTypes?: readonly string[];
  /** Entries of packages in the repository that it may import, in addition: data alone, without what the rest of the package loads. */
  readonly mayEntries?: readonly string[];
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
    mayEntries: ['@gatehouse/contract/agent-templates', '@gatehouse/contract/channel-setup', '@gatehouse/contract/vendor-list'],
    external: [
      '@dagrejs/dagre',
      '@mermaid-js/tiny/*',
      '@tanstack/react-query',
      '@xyflow/react',
      'diff',
      'highlight.js',
      'highlight.js/*',
      'marked',
      'react',
      'react-dom/client',
      'temml',
      'vite',
    ],
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
    files:
      /^packages\/server\/src\/(wiring\/|testing\/|server(-handle)?\.ts$|config-schema\.ts$|config-defaults\.json$|version\.ts$|(storage|postgres)-worker\.ts$)/,
    may: [...below, 'llm', 'channels', 'runtime', 'features', 'gateway', 'transactions'],
  },
  {
    name: 'server',
    files: /^packages\/server\/src\/(process\/|[^/]+$)/,
    may: [...below, 'llm', 'channels', 'runtime', 'features', 'gateway', 'wiring', 'transactions'],
  },
  { name: 'suites', files: /^(e2e|bench|proving|tools|examples)\/|^vitest\.config\.ts$/, may: ['contract', 'client', 'cli', 'testkit', 'server'] },
];

/** Imports that a module may make beyond its zone, each with its reason. */
export const exceptions: readonly { readonly from: RegExp; readonly to: RegExp; readonly reason: string }[] = [
  {
    from: /^(e2e|bench|proving)\//,
    to: /^packages\/testkit\/src\/(fake-provider|fake-telegram|authorization-server|certificates|schedule-cases)\.ts$/,
    reason: 'suites that run the built daemon do not load the server, which the entry of the testkit would',
  },
  {
    from: /^e2e\/dashboard-mcp\.test\.ts$/,
    to: /^packages\/server\/src\/features\/agents\/mcp\/testing\//,
    reason: 'runs the built daemon against the MCP server of the tests of the feature',
  },
  { from: /^bench\/micro\//, to: /^packages\/server\/src\/(kernel|llm|features\/knowledge\/memory)\//, reason: 'measures parts alone' },
  {
    from: /^bench\/micro\/channels\.ts$/,
    to: /^packages\/server\/src\/(channels\/(port|irc\/line|telegram\/platform)|features\/channels\/delivery\/\w+|transactions\/channel-sends)\.ts$/,
    reason: 'measures parts alone',
  },
  {
    from: /^bench\/micro\/postgres\.ts$/,
    to: /^packages\/server\/src\/(transactions\/commit-turn|features\/(conversations\/turns|operations\/nodes)\/migrations)\.ts$/,
    reason: 'commits turns without a daemon',
  },
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
    reason: 'needs several processes on one database, which the daemon prevents by locking its folder',
  },
  {
    from: /^proving\/lib\/stale-(owner|work)\.ts$/,
    to: /^packages\/server\/src\/(kernel\/db\/(db|operation|sqlite\/inline)|transactions\/[a-z-]+|features\/[a-z/-]+\/(api|[a-z-]*store))\.ts$/,
    reason: 'needs two owners of one work item on one database, which the daemon prevents by locking its folder',
  },
  {
    from: /^proving\/(r11-nodes\.test|lib\/stale-node(-work)?)\.ts$/,
    to: /^packages\/server\/src\//,
    reason: 'makes the writes of two daemons on one PostgreSQL, one of which is frozen',
  },
  {
    from: /^proving\/lib\/outward-process\.ts$/,
    to: /^packages\/server\/src\/kernel\/egress\.ts$/,
    reason: 'requests archives as the product does, from a site that replaces GitHub',
  },
  {
    from: /^proving\/(hammer|lib\/hammer\/)/,
    to: /^packages\/server\/src\//,
    reason: 'runs every write operation as storage threads of two daemons do',
  },
  {
    from: /^proving\/lib\/year-[a-z]+\.ts$/,
    to: /^packages\/server\/src\//,
    reason: 'lives a year by the operations themselves: through a daemon it would take days',
  },
  { from: /^proving\/broken\//, to: /^packages\/server\/src\//, reason: 'names the types of the exports that it changes' },
  {
    from: /^packages\/server\/src\/transactions\/.*\.test\.ts$/,
    to: /^packages\/server\/src\/llm\/models?\.ts$/,
    reason: 'opens whole turns, which name their model',
  },
  { from: /^tools\/gen\.ts$/, to: /^packages\/(contract|server|cli)\/src\//, reason: 'generates the documents from modules that no entry exports' },
];

/** A test belongs to the zone of the code next to it and may also use these. */
export const testsMayImport: readonly string[] = ['testkit', 'client', 'contract'];

/** Tests of these zones use the real features instead of mocks. */
export const testsTakeFeatures: readonly string[] = ['features', 'gateway'];

/** Below this number of modules the walk itself has failed, and green would mean nothing. */
export const leastModules = 300;
