import type { AllowRule } from '@gatehouse/client';
import { stringify } from '../commands/yaml.ts';

/** Formats a rule as it is in `config.yaml`. */
export function ruleText(rule: AllowRule): string {
  return stringify({ approvals: { rules: [rule] } }).trimEnd();
}
