import { windowBudgets } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `budgets`: hard caps over all agents together. */
export const BudgetsConfig = z.strictObject(windowBudgets);
export type BudgetsConfig = z.output<typeof BudgetsConfig>;
