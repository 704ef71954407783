import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { deletePrompt, listPrompts, savePrompt } from './store.ts';

/** The prompts that people save to use them again. */
export function createPrompts({ db, bus, clock }: { readonly db: Db; readonly bus: EventBus; readonly clock: Clock }): {
  readonly methods: HandlersOf<`prompts.${'list' | 'save' | 'delete'}`>;
} {
  /** Returns the owner of the prompts of a call. */
  function personOf(call: CallContext): string {
    if (call.agentCaller !== undefined) throw new AppError('denied', 'Saved prompts are for people, not for agents');
    return ownerOf(call);
  }

  return {
    methods: {
      'prompts.list': async (_, call) => {
        const rows = await db.read(listPrompts, { principalId: personOf(call) });
        return { prompts: rows.map(({ name, text, updatedAtMs }) => ({ name, text, updatedAt: updatedAtMs })) };
      },

      'prompts.save': async ({ name, text }, call) => {
        const principalId = personOf(call);
        const updatedAtMs = clock.now();
        const audit = auditRow(call, updatedAtMs, { actionType: 'prompts.save', classification: 'mutate', target: name });
        await db.write(savePrompt, { principalId, name, text, updatedAtMs, audit });
        announceAudit(bus, audit);
        return { name, text, updatedAt: updatedAtMs };
      },

      'prompts.delete': async ({ name }, call) => {
        const principalId = personOf(call);
        const audit = auditRow(call, clock.now(), { actionType: 'prompts.delete', classification: 'destructive', target: name });
        if (!(await db.write(deletePrompt, { principalId, name, audit }))) throw new AppError('not_found', 'Prompt not found', { param: 'name' });
        announceAudit(bus, audit);
        return { name, deleted: true as const };
      },
    },
  };
}
