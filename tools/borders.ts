import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { type Import, importsOf, packageExports, sourceFiles } from './module-graph.ts';
import { exceptions, leastModules, testsMayImport, testsTakeFeatures, zones, type Zone } from './borders-rules.ts';

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly specifier: string;
  readonly message: string;
}
export interface Report {
  readonly modules: number;
  readonly imports: number;
  readonly violations: readonly Violation[];
}

const zoneOf = (file: string): Zone | undefined => zones.find((zone) => zone.files.test(file));
const packageOf = (file: string): string | undefined => /^packages\/([^/]+)\//.exec(file)?.[1];
const featureOf = (file: string): string | undefined => /\/src\/features\/[^/]+\/([^/]+)\//.exec(file)?.[1];
const isTest = (file: string): boolean => /\.test(-d)?\.tsx?$|\/testing(\/|\.ts$)/.test(file);

type Entries = (packageName: string) => readonly string[];

function judge(file: string, zone: Zone, one: Import, entries: Entries): string | undefined {
  if (one.specifier.startsWith('.')) return judgeRelative(file, zone, one);
  const own = /^@gatehouse\/([^/]+)(\/.*)?$/.exec(one.specifier);
  if (own?.[1] !== undefined) {
    if (own[2] !== undefined && !entries(own[1]).includes(`.${own[2]}`))
      return `reaches into a package; import "@gatehouse/${own[1]}" and export what is missing from its entry`;
    if (own[1] === packageOf(file)) return 'imports its own package by name; use the relative path of the file that has the thing';
    if (zone.mayEntries?.includes(one.specifier)) return undefined;
    return allowed(file, zone, own[1], one.typeOnly);
  }
  if (zone.external && !isTest(file)) {
    const name = one.specifier.startsWith('node:') ? 'node:' : one.specifier;
    const isAllowed = zone.external.some((one) => one === name || (one.endsWith('/*') && name.startsWith(one.slice(0, -1))));
    if (!isAllowed) return `is not a dependency of zone "${zone.name}" (${zone.external.join(', ') || 'none'} allowed)`;
  }
  return undefined;
}

function judgeRelative(file: string, zone: Zone, one: Import): string | undefined {
  const target = posix.normalize(posix.join(posix.dirname(file), one.specifier));
  if (exceptions.some((exception) => exception.from.test(file) && exception.to.test(target))) return undefined;
  if (packageOf(target) !== packageOf(file))
    return packageOf(target) === undefined ? undefined : `leaves its package; import "@gatehouse/${packageOf(target)}" instead`;
  const targetZone = zoneOf(target);
  if (!targetZone) return 'leads to a folder that belongs to no zone; add it to tools/borders-rules.ts';
  if (isTest(file) && testsTakeFeatures.includes(zone.name) && targetZone.name === 'features') return undefined;
  const feature = featureOf(target);
  if (
    feature !== undefined &&
    feature !== featureOf(file) &&
    targetZone.name === 'features' &&
    (zone.name === 'features' || zone.name === 'gateway')
  ) {
    if (!/\/features\/[^/]+\/[^/]+\/api\.ts$/.test(target))
      return `reaches into feature "${feature}"; only its api.ts may be imported, and only as types`;
    return one.typeOnly ? undefined : `takes a value from feature "${feature}"; use "import type", values meet in server.ts`;
  }
  return allowed(file, zone, targetZone.name, one.typeOnly);
}

function allowed(file: string, zone: Zone, target: string, typeOnly: boolean): string | undefined {
  if (target === zone.name || zone.may.includes(target)) return undefined;
  if (isTest(file) && testsMayImport.includes(target)) return undefined;
  if (zone.mayTypes?.includes(target)) return typeOnly ? undefined : `is a value import; zone "${zone.name}" may take only types from "${target}"`;
  return `goes against the direction of imports: "${zone.name}" must not import "${target}"`;
}

/** Reads all modules below `root` and lists the imports that break a rule of borders-rules.ts. */
export function checkBorders(root: string): Report {
  const violations: Violation[] = [];
  const entries: Entries = (name) => Object.keys(packageExports(root, name));
  let modules = 0;
  let imports = 0;
  for (const file of sourceFiles(root)) {
    const zone = zoneOf(file);
    if (!zone) {
      violations.push({ file, line: 1, specifier: '', message: 'belongs to no zone; add its folder to tools/borders-rules.ts' });
      continue;
    }
    modules += 1;
    for (const one of importsOf(file, readFileSync(`${root}/${file}`, 'utf8'))) {
      imports += 1;
      const message = judge(file, zone, one, entries);
      if (message !== undefined) violations.push({ file, line: one.line, specifier: one.specifier, message });
    }
  }
  return { modules, imports, violations };
}

if (import.meta.main) {
  const report = checkBorders(process.cwd());
  for (const { file, line, specifier, message } of report.violations) console.error(`${file}:${line}  "${specifier}" ${message}`);
  const tooFew = report.modules < leastModules;
  if (tooFew) console.error(`Only ${report.modules} modules seen, at least ${leastModules} expected: run it from the root of the repository.`);
  console.log(`${report.modules} modules, ${report.imports} imports, ${report.violations.length} against the rules`);
  process.exitCode = tooFew || report.violations.length > 0 ? 1 : 0;
}
