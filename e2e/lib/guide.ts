import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { root } from '../../proving/lib/daemon.ts';

const run = promisify(execFile);
const longestMs = 90_000;

/** A page of docs/guide whose commands are run verbatim. */
export interface Guide {
  /** The fenced blocks of the section under a heading. */
  blocks(heading: string, language: 'sh' | 'sql' | 'text' | 'ts' | 'yaml'): string[];
  /** The n-th command of a section, which counts as run from then on. */
  take(heading: string, index?: number): string;
  /** Runs the n-th command of a section and returns its output. */
  paste(env: NodeJS.ProcessEnv, heading: string, index?: number): Promise<string>;
  /** Files of the pictures on the page. */
  readonly pictures: readonly string[];
  /** Headings of commands that were not run, one for each command. */
  unpasted(): string[];
}

export async function readGuide(name: string): Promise<Guide> {
  const file = join(root, 'docs/guide', name);
  const text = await readFile(file, 'utf8');
  const sections = text.split(/^## /m);
  const pasted = new Set<string>();

  function blocks(heading: string, language: string): string[] {
    const section = sections.find((part) => part.startsWith(`${heading}\n`)) ?? '';
    return [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, each]) => each === language).map(([, , body = '']) => body);
  }

  function take(heading: string, index = 0): string {
    const block = blocks(heading, 'sh')[index] ?? '';
    expect([heading, block]).not.toEqual([heading, '']);
    pasted.add(`${heading} ${index}`);
    return block;
  }

  return {
    blocks,
    take,
    pictures: [...text.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, path = '']) => join(dirname(file), path)),
    async paste(env, heading, index) {
      const { stdout } = await run('bash', ['-ec', take(heading, index)], { cwd: root, env, timeout: longestMs });
      return stdout;
    },
    unpasted: () =>
      sections
        .map((section) => section.split('\n', 1)[0] ?? '')
        .flatMap((heading) => blocks(heading, 'sh').map((_, index) => `${heading} ${index}`))
        .filter((each) => !pasted.has(each)),
  };
}

/**
 * Returns the environment of the shell that runs the commands of a guide. Its `npx` starts the command of this repository, as the real one
 * would, which takes a second of processor time each time to find it.
 */
export async function shellOf(place: string, { port, token }: { readonly port: number; readonly token: string }): Promise<NodeJS.ProcessEnv> {
  const folder = join(place, 'npx');
  await mkdir(folder);
  const { bin } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { bin: { gatehouse: string } };
  const lines = ['#!/bin/sh', '[ "$1" = gatehouse ] || exit 1', 'shift', `exec "${process.execPath}" "${join(root, bin.gatehouse)}" "$@"`];
  await writeFile(join(folder, 'npx'), `${lines.join('\n')}\n`, { mode: 0o755 });
  return {
    PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}`,
    HOME: place,
    GATEHOUSE_URL: `http://127.0.0.1:${port}`,
    GATEHOUSE_TOKEN: token,
  };
}
