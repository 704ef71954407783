import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { readFileInside, writeFileInside } from '../../../../kernel/safe-path.ts';

const file = '.gatehouse/workspace.json';
const maxBytes = 16 * 1024;

const State = z.strictObject({
  version: z.literal(1),
  bootstrapSeededAt: z.int().min(0).optional(),
  onboardingCompletedAt: z.int().min(0).optional(),
});

/** State that the daemon keeps about a workspace, where no tool can write. */
export type WorkspaceState = z.output<typeof State>;

/** Undefined when there is none, or it is unreadable. */
export async function readState(workspaceDir: string): Promise<WorkspaceState | undefined> {
  try {
    const parsed = State.safeParse(parseJson((await readFileInside(workspaceDir, file, { maxBytes })).toString()));
    return parsed.success ? parsed.data : undefined;
  } catch (error) {
    if (error instanceof AppError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export async function writeState(workspaceDir: string, state: WorkspaceState): Promise<void> {
  await writeFileInside(workspaceDir, file, JSON.stringify(state), { maxBytes });
}
