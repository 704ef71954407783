import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import * as z from 'zod';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { allowed } from './allowed.ts';
import { rules } from './rules.ts';

const server = 'packages/server/src';
const elsewhere = `${server}/features/a/x.ts`;

/** Rule, file, text; each case is linted in a separate folder. */
const refused: readonly [string, string, string][] = [
  ['clock', elsewhere, 'export const t = Date.now();'],
  ['clock', elsewhere, 'export const t = new Date();'],
  ['clock', elsewhere, 'export const t = performance.now();'],
  ['clock', elsewhere, 'export const t = Date["now"]();'],
  ['environment', elsewhere, 'export const t = process.env.HOME;'],
  ['environment', elsewhere, 'import { env } from "node:process"; export const t = env.HOME;'],
  ['json', elsewhere, 'export const t = JSON.parse("{}");'],
  ['network', elsewhere, 'export const t = fetch("http://127.0.0.1/");'],
  ['network', elsewhere, 'import http from "node:http"; export const t = http.request("http://127.0.0.1/");'],
  ['network', elsewhere, 'import { connect } from "node:net"; export const t = connect(1);'],
  ['network', elsewhere, 'import { Pool } from "undici"; export const t = Pool;'],
  ['network', elsewhere, 'export const t = await import("undici");'],
  ['network', elsewhere, 'import Pool from "undici/lib/dispatcher/pool.js"; export const t = Pool;'],
  ['network', elsewhere, 'export const t = new WebSocket("ws://127.0.0.1/");'],
  ['child-process', elsewhere, 'import { spawn } from "node:child_process"; export const t = spawn;'],
  ['child-process', elsewhere, 'export const t = await import("child_process");'],
  ['paths', elsewhere, 'import { join } from "node:path"; export const t = (name: string) => join("base", name);'],
  ['paths', elsewhere, 'import path from "node:path"; export const t = (name: string) => path.resolve("base", name);'],
  ['paths', elsewhere, 'import { join as glue } from "node:path"; export const t = (name: string) => glue("base", `${name}.txt`);'],
  ['exit', elsewhere, 'export const t = () => process.exit(1);'],
  ['random', elsewhere, 'export const t = Math.random();'],
  ['zod-namespace', 'packages/contract/src/x.ts', 'import { z } from "zod"; export const t = z;'],
  ['own-mocks', `${server}/features/a/x.test.ts`, 'import { vi } from "vitest"; vi.mock("./store.ts");'],
];

const allowedCases: readonly [string, string][] = [
  [`${server}/kernel/clock.ts`, 'export const t = Date.now();'],
  [elsewhere, 'export const t = new Date(0);'],
  [elsewhere, 'export const t = (Date: { now(): number }, at: number) => new Intl.DateTimeFormat().format(at) + String(Date);'],
  [`${server}/main.ts`, 'export const t = process.env;'],
  [`${server}/process/daemon.ts`, 'export const t = (process: NodeJS.Process) => process.exit(0);'],
  [`${server}/kernel/json.ts`, 'export const t = JSON.parse("{}");'],
  [`${server}/kernel/egress.ts`, 'export const t = fetch("http://127.0.0.1/");'],
  [elsewhere, 'export const t = (fetch: (url: string) => void) => fetch("http://127.0.0.1/");'],
  [elsewhere, 'import type { Pool } from "undici"; export type T = Pool;'],
  [elsewhere, 'import http from "node:http"; export const t = http.createServer();'],
  [elsewhere, 'import { join } from "node:path"; export const t = (home: string) => join(home, "logs", "a.log");'],
  [`${server}/kernel/safe-path.ts`, 'import { join } from "node:path"; export const t = (name: string) => join("base", name);'],
  [`${server}/features/a/x.test.ts`, 'export const t = Date.now();'],
  ['packages/cli/src/x.ts', 'export const t = process.env.HOME;'],
  ['packages/contract/src/x.ts', 'import * as z from "zod"; export const t = z;'],
];

const Output = z.object({ diagnostics: z.array(z.object({ code: z.string(), filename: z.string(), message: z.string() })) });
let root: string;
let found: z.output<typeof Output>['diagnostics'];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'house-'));
  const plant = (folder: string, file: string, text: string): void => {
    mkdirSync(dirname(join(root, folder, file)), { recursive: true });
    writeFileSync(join(root, folder, file), text);
  };
  refused.forEach(([, file, text], index) => plant(`refused-${index}`, file, text));
  allowedCases.forEach(([file, text], index) => plant(`allowed-${index}`, file, text));
  const all = Object.fromEntries(Object.keys(rules).map((name) => [`house/${name}`, 'error']));
  const config = {
    plugins: [],
    categories: { correctness: 'off' },
    env: { builtin: true, node: true },
    jsPlugins: [join(import.meta.dirname, 'plugin.ts')],
    rules: all,
  };
  writeFileSync(join(root, 'oxlintrc.json'), JSON.stringify(config));
  const oxlint = join(import.meta.dirname, '../../node_modules/.bin/oxlint');
  // A non-zero exit is expected; the output is checked.
  const { stdout } = await promisify(execFile)(oxlint, ['-c', 'oxlintrc.json', '-f', 'json', '.'], { cwd: root }).catch(
    (failure: { stdout: string }) => failure,
  );
  found = Output.parse(JSON.parse(stdout)).diagnostics;
}, 30_000);
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

it.each(refused.map(([rule, , text], index) => [rule, text, index] as const))('%s refuses: %s', (rule, _text, index) => {
  const here = found.filter((one) => one.filename.startsWith(`refused-${index}/`));
  expect(here.map((one) => one.code)).toEqual([`house(${rule})`]);
});

it.each(allowedCases.map(([file, text], index) => [file, text, index] as const))('%s may: %s', (_file, _text, index) => {
  expect(found.filter((one) => one.filename.startsWith(`allowed-${index}/`))).toEqual([]);
});

it('every rule has a case that it refuses', () => {
  expect(new Set(refused.map(([rule]) => rule))).toEqual(new Set(Object.keys(rules)));
});

it('no exemption outlives its file', () => {
  const source = join(import.meta.dirname, '../..', server);
  const paths = Object.values(allowed).flat();
  expect(paths.filter(({ path }) => !existsSync(join(source, path)))).toEqual([]);
});
