import { mkdir, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Result, workspaceLimits } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { readFileInside, statInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import { committable, commitStream, maxFileBytes, messageOf } from './git-commit.ts';
import { type ChangedPath, type GitStatus, parseStatus } from './git-status.ts';
import { type Git, type GitResult, type GitRun, GitStalled } from './git.ts';
import type { Usage } from '../quota/count-files.ts';

type Commit = Result<'workspace.git.commit'>;

const staleLockMs = 30_000;
/** About 50,000 names: they are parsed in one go. */
const maxStatusBytes = 4 * 1024 * 1024;
const maxDiffFiles = 500;
const maxLogBytes = 4 * 1024 * 1024;
const maxMessageCharacters = 2000;
const maxAttempts = 2;

/** Overrides every `.gitattributes` in the workspace: bytes are stored as they are, and no filter runs. */
const attributes = '* -text !eol -ident -filter -working-tree-encoding !diff !merge\n';
const excluded = '.gatehouse/\n.[0-9a-f]*.tmp\n';

export interface RepositoryDeps {
  readonly git: Git;
  readonly clock: Clock;
  readonly workspaceDir: string;
  /** Removes special files with names that git opens, and reports those that remain. */
  readonly clear: () => Promise<Pick<Usage, 'special'>>;
}

/**
 * The history of one workspace. The repository is next to the workspace, so that nothing the agent writes becomes
 * its configuration, and git reads only names from the workspace: contents are read and written through safe-path,
 * which follows no links.
 */
export class Repository {
  readonly #deps: RepositoryDeps;
  readonly #gitDir: string;

  constructor(deps: RepositoryDeps) {
    this.#deps = deps;
    this.#gitDir = `${dirname(deps.workspaceDir)}/.git-${basename(deps.workspaceDir)}`;
  }

  #run(args: readonly string[], more: Partial<GitRun> = {}): Promise<GitResult> {
    return this.#deps.git({ gitDir: this.#gitDir, args, ...more });
  }

  /**
   * Runs git over the workspace. Git opens some files by name and would block on a pipe for ever: pipes with such names
   * are removed first. One that a command creates meanwhile is detected because git sleeps.
   */
  async #runInside(args: readonly string[], more: Partial<GitRun> = {}): Promise<GitResult> {
    for (let attempt = 1; ; attempt += 1) {
      const { special } = await this.#deps.clear();
      try {
        return await this.#run(args, { workTree: this.#deps.workspaceDir, ...more });
      } catch (error) {
        if (!(error instanceof GitStalled)) throw error;
        if (attempt === maxAttempts) throw blocked(error, special);
      }
    }
  }

  async exists(): Promise<boolean> {
    return (await stat(join(this.#gitDir, 'HEAD')).catch(() => undefined)) !== undefined;
  }

  async #ready(): Promise<void> {
    if (!(await this.exists())) throw new AppError('precondition_failed', 'No git repository in workspace. Initialize with workspace.init first.');
    const lock = join(this.#gitDir, 'index.lock');
    const held = await stat(lock).catch(() => undefined);
    // Its owner was killed: none of our commands runs that long.
    if (held !== undefined && this.#deps.clock.ageNow() - held.mtimeMs > staleLockMs) await unlink(lock).catch(() => {});
  }

  /** Creates the repository if it is missing. */
  async init(): Promise<void> {
    if (await this.exists()) return;
    await mkdir(join(this.#gitDir, 'info'), { recursive: true, mode: 0o700 });
    await writeFile(join(this.#gitDir, 'info/attributes'), attributes);
    await writeFile(join(this.#gitDir, 'info/exclude'), excluded);
    done(await this.#run(['init', '--quiet', '--bare', '--template=', '--initial-branch=main', '--object-format=sha1']));
  }

  async status(): Promise<GitStatus & { readonly truncated: boolean }> {
    await this.#ready();
    if ((await stat(this.#deps.workspaceDir).catch(() => undefined)) === undefined)
      throw new AppError('precondition_failed', 'There is no workspace folder yet');
    const args = ['status', '--porcelain=v2', '-z', '--branch', '--untracked-files=all', '--ignore-submodules=all', '--no-renames'];
    const result = await this.#runInside(args, { maxBytes: maxStatusBytes });
    if (!result.cut) done(result);
    return { ...parseStatus(result.stdout, result.cut), truncated: result.cut };
  }

  async #head(): Promise<string | undefined> {
    const { code, stdout } = await this.#run(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
    return code === 0 ? stdout.toString().trim() : undefined;
  }

  /** Lists commits, newest first; none before the first commit. */
  async log(limit: number): Promise<Commit[]> {
    await this.#ready();
    if ((await this.#head()) === undefined) return [];
    const result = await this.#run(['log', '-z', '--format=%H%n%an%n%aI%n%B', `--max-count=${limit}`, 'HEAD', '--'], { maxBytes: maxLogBytes });
    if (!result.cut) done(result);
    const records = result.stdout.toString().split('\0');
    if (result.cut) records.pop();
    return records.flatMap((record) => {
      const [sha = '', author = '', date = '', ...message] = record.split('\n');
      return sha === '' ? [] : [{ sha, author, date, message: message.join('\n').trim().slice(0, maxMessageCharacters).toWellFormed() }];
    });
  }

  /** Diffs tracked files, or those at or below `path`. */
  async diff(path: string | undefined): Promise<string> {
    const { entries } = await this.status();
    if ((await this.#head()) === undefined) return '';
    const changed = entries.filter((entry) => entry.status !== 'untracked' && isAtOrBelow(entry.path, path));
    const copies = join(this.#gitDir, 'diff');
    const notes: string[] = [];
    const shown: string[] = [];
    try {
      await rm(copies, { recursive: true, force: true });
      await mkdir(copies, { mode: 0o700 });
      for (const entry of changed.slice(0, maxDiffFiles)) {
        const size = await this.#copy(entry, copies);
        if (size > workspaceLimits.readBytes) notes.push(`[${entry.path}: ${size} bytes, not shown]`);
        else shown.push(entry.path);
      }
      if (changed.length > maxDiffFiles) notes.push(`[${changed.length - maxDiffFiles} further files differ]`);
      let text = '';
      if (shown.length > 0) {
        const args = ['--no-optional-locks', 'diff', '--no-color', '--no-ext-diff', '--no-textconv', '--no-renames', '--ignore-submodules=all'];
        const result = await this.#run([...args, 'HEAD', '--', ...shown], { workTree: copies, maxBytes: workspaceLimits.diffBytes });
        if (result.cut) notes.push(`[cut: the diff is longer than ${workspaceLimits.diffBytes} bytes]`);
        else done(result);
        text = result.stdout.toString();
      }
      return notes.length === 0 ? text : `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${notes.join('\n')}\n`;
    } finally {
      await rm(copies, { recursive: true, force: true });
    }
  }

  /** Copies the file as it is now, unless it is gone or too large; returns its size. */
  async #copy({ path, status: change }: ChangedPath, copies: string): Promise<number> {
    if (change === 'deleted') return 0;
    const found = await statInside(this.#deps.workspaceDir, path).catch(() => undefined);
    if (found === undefined || found.size > workspaceLimits.readBytes) return found?.size ?? 0;
    const bytes = await readFileInside(this.#deps.workspaceDir, path, { maxBytes: workspaceLimits.readBytes });
    await writeFileInside(copies, path, bytes, { maxBytes: workspaceLimits.readBytes });
    return bytes.length;
  }

  /** Commits changes: all of them, or those at or below one of `paths`. */
  async commit(message: string, paths: readonly string[] | undefined): Promise<Commit> {
    const { entries, truncated } = await this.status();
    if (truncated) throw new AppError('precondition_failed', 'Too many files differ: name some of them in .gitignore');
    const wanted = entries.filter((entry) => paths?.some((path) => isAtOrBelow(entry.path, path)) ?? true);
    const changes = await committable(this.#deps.workspaceDir, wanted);
    if (changes.length === 0) throw new AppError('precondition_failed', 'Nothing to commit');
    const { code, stdout } = await this.#run(['symbolic-ref', '--quiet', 'HEAD']);
    if (code !== 0) throw new AppError('precondition_failed', 'HEAD is detached: check out a branch first');
    const about = { ref: stdout.toString().trim(), parent: await this.#head(), message: messageOf(message), atMs: this.#deps.clock.now() };
    done(
      await this.#run(['fast-import', '--quiet', '--done', '--date-format=raw'], { input: commitStream(this.#deps.workspaceDir, changes, about) }),
    );
    // Update the index, so that the committed files no longer differ.
    done(await this.#runInside(['read-tree', '--reset', 'HEAD']));
    const [made] = await this.log(1);
    if (made === undefined) throw new Error('the commit that was just made is not there');
    return made;
  }

  async restore(path: string): Promise<void> {
    await this.#ready();
    const result = await this.#run(['cat-file', 'blob', `HEAD:${path}`], { maxBytes: maxFileBytes });
    if (result.cut) throw new AppError('payload_too_large', `The committed file is larger than ${maxFileBytes} bytes`);
    if (result.code !== 0) throw new AppError('not_found', 'File has no committed version');
    await mkdir(this.#deps.workspaceDir, { recursive: true, mode: 0o700 });
    await writeFileInside(this.#deps.workspaceDir, path, result.stdout, { maxBytes: maxFileBytes });
  }
}

function blocked(cause: GitStalled, special: readonly string[]): AppError {
  const names = special.slice(0, 3).map((path) => JSON.stringify(path.slice(-200)));
  const which = names.length === 0 ? 'one that is gone again' : names.join(', ');
  return new AppError(
    'conflict',
    `A pipe or another special file of the workspace blocks git: ${which}. Delete it (workspace.deleteFile), stop the command that creates it, and try again`,
    { cause },
  );
}

function isAtOrBelow(path: string, folder: string | undefined): boolean {
  return folder === undefined || path === folder || path.startsWith(`${folder}/`);
}

function done({ code, stderr }: GitResult): void {
  if (code !== 0) throw new AppError('internal', 'Internal error', { cause: new Error(`git ended with ${code}: ${stderr.trim()}`) });
}
