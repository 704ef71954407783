import { type ResultInput, standardFolders, templateNames, workspaceLimits } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { entryInside, listFolderInside, makeFoldersInside, readFileInside, statInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import { readState, type WorkspaceState, writeState } from './state.ts';
import { hasName, isUntouched, templateOf } from './templates.ts';

type Status = ResultInput<'workspace.status'>;

/** Creates missing standard folders and templates and keeps the rest. BOOTSTRAP.md is created only once: when it is gone, it has done its work. */
export async function setUp(workspaceDir: string, clock: Clock): Promise<void> {
  await makeFoldersInside(workspaceDir, [...standardFolders, 'skills']);
  const state = await readState(workspaceDir);
  for (const name of templateNames) {
    if (name === 'BOOTSTRAP.md' && state?.bootstrapSeededAt !== undefined) continue;
    if ((await entryInside(workspaceDir, name)) !== 'missing') continue;
    await writeFileInside(workspaceDir, name, templateOf(name), { maxBytes: workspaceLimits.writeBytes });
  }
  if (state === undefined) await writeState(workspaceDir, { version: 1, bootstrapSeededAt: clock.now() });
}

/** Returns the files part of `workspace.status`; records when it first finds the workspace bootstrapped. */
export async function statusOf(workspaceDir: string, clock: Clock): Promise<Omit<Status, 'hasGitRepo'>> {
  const exists = await folderExists(workspaceDir);
  const files: Status['files'] = await Promise.all(
    templateNames.map(async (name) => {
      const found = await statInside(workspaceDir, name);
      if (found === undefined) return { name, present: false };
      return { name, present: true, sizeBytes: found.size, untouched: isUntouched((await textOf(workspaceDir, name)) ?? '') };
    }),
  );
  const isBootstrapped =
    exists && (!files.some((file) => file.name === 'BOOTSTRAP.md' && file.present) || hasName((await textOf(workspaceDir, 'IDENTITY.md')) ?? ''));
  const state = exists ? await noteBootstrapped(workspaceDir, isBootstrapped, clock) : undefined;
  return { dir: workspaceDir, exists, files, isBootstrapped, ...(state !== undefined && { state }) };
}

async function noteBootstrapped(workspaceDir: string, isBootstrapped: boolean, clock: Clock): Promise<WorkspaceState | undefined> {
  const state = await readState(workspaceDir);
  if (state === undefined || !isBootstrapped || state.onboardingCompletedAt !== undefined) return state;
  const completed = { ...state, onboardingCompletedAt: clock.now() };
  await writeState(workspaceDir, completed);
  return completed;
}

async function folderExists(workspaceDir: string): Promise<boolean> {
  try {
    await listFolderInside(workspaceDir, '.', 0);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return false;
    throw error;
  }
}

async function textOf(workspaceDir: string, name: string): Promise<string | undefined> {
  try {
    return (await readFileInside(workspaceDir, name, { maxBytes: workspaceLimits.readBytes })).toString();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
