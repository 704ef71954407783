import type * as z from 'zod';

/** An action of `<platform>.action`: one row for the method, `channels.capabilities`, the reference and the approval gate. */
export interface PlatformAction {
  /** `read` changes nothing; `destructive` cannot be undone, or takes something from people. */
  readonly risk: 'read' | 'mutate' | 'destructive';
  readonly summary: string;
  /** Parameters after `action` and `endpoint`, in the spelling of the platform. */
  readonly params: () => z.ZodObject;
  readonly result: () => z.ZodObject;
}

export type PlatformActions = Readonly<Record<string, PlatformAction>>;
