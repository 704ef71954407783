import { AgentConfig } from '@gatehouse/contract';
import type * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { findingsOf } from '../../../kernel/config/problems.ts';
import { withoutNulls } from '../../../kernel/merge-patch.ts';

/** Returns the configuration of an agent after a patch; fails with `invalid_params` that name the keys and what was expected. */
export function parsePatched(merged: Record<string, unknown>, patch: Readonly<Record<string, unknown>>): AgentConfig {
  const whole = withoutNulls(merged);
  const parsed = AgentConfig.safeParse(whole);
  // A key that is reset is missing in the merged object, so unknown keys are searched in the patch itself.
  const unknown = (AgentConfig.safeParse(patch).error?.issues ?? []).filter(isUnknownKey);
  if (parsed.success && unknown.length === 0) return parsed.data;
  const wrong = parsed.error?.issues.filter((issue) => !isUnknownKey(issue)) ?? [];
  const issues = [...explain(wrong, whole), ...explain(unknown, patch)];
  throw new AppError('invalid_params', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), {
    issues,
    ...(issues[0] && { param: issues[0].path }),
  });
}

const isUnknownKey = (issue: z.core.$ZodIssue): boolean => issue.code === 'unrecognized_keys';

function explain(issues: readonly z.core.$ZodIssue[], value: unknown) {
  return findingsOf(issues, { schema: AgentConfig, value, hidden: () => false }).map(({ path, message }) => ({
    path: ['config', ...path].join('.'),
    message,
  }));
}

/** Fails with `invalid_params` when a configuration names a model that no provider has. */
export function checkModels(config: AgentConfig, knowsModel: (name: string) => boolean): void {
  const named: [string, string | undefined][] = [
    ['config.model', config.model],
    ...config.fallbackModels.map((name, index): [string, string] => [`config.fallbackModels.${index}`, name]),
  ];
  named.push(['config.heartbeat.model', config.heartbeat.model]);
  for (const [operation, choice] of Object.entries(config.operationModels)) named.push([`config.operationModels.${operation}.model`, choice.model]);
  const issues = named
    .filter(([, name]) => name !== undefined && !knowsModel(name))
    .map(([path, name]) => ({ path, message: `no configured provider has a model "${name}"` }));
  const first = issues[0];
  if (first !== undefined) throw new AppError('invalid_params', `${first.path}: ${first.message}`, { param: first.path, issues });
}
