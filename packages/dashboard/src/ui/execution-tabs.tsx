import { useSession } from '../data/context.ts';
import { Tabs } from './tabs.tsx';

/** The pages of what ran and what will run: one family under one entry of the navigation. */
export const executionPages = [
  { to: '/runs', name: 'Runs' },
  { to: '/graphs', name: 'Graphs' },
  { to: '/schedule', name: 'Schedule' },
  { to: '/webhooks', name: 'Webhooks', adminOnly: true },
] as const;

export type ExecutionPage = (typeof executionPages)[number]['to'];

export function ExecutionTabs({ current }: { readonly current: ExecutionPage }) {
  const { admin } = useSession();
  return (
    <Tabs
      label="Executions"
      tabs={executionPages.flatMap((page) =>
        !('adminOnly' in page) || admin ? [{ to: page.to, name: page.name, current: page.to === current }] : [],
      )}
    />
  );
}
