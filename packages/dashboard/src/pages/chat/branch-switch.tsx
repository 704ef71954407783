import { t, tx } from '../../language.ts';
import { familyOf } from '../../data/branches.ts';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { IconButton } from '../../ui/parts.tsx';

const maxLoaded = 200;

/** Moves between a conversation and its branches, in the order in which they were begun. */
export function BranchSwitch({ reference }: { readonly reference: string }) {
  const { client } = useSession();
  const { data } = useLoad(['branches'], (signal) => client.call('session.list', { allAgents: true, source: 'chat', limit: maxLoaded }, { signal }), {
    changedBy: ['session:created', 'session:expired'],
    settleMs: 1_500,
  });
  const family = familyOf(reference, data?.sessions ?? []);
  const at = family.indexOf(reference);
  if (family.length < 2 || at < 0) return null;
  const go = (next: string | undefined): void => {
    if (next !== undefined) navigate(`/chat/${next}`);
  };
  return (
    <span className="branch-switch" role="group" aria-label={t('Branches')}>
      <IconButton icon="previous" label={t('Previous branch')} disabled={at === 0} onClick={() => go(family[at - 1])} />
      <span className="hint">{tx('{at} of {family}', { at: at + 1, family: family.length })}</span>
      <IconButton icon="next" label={t('Next branch')} disabled={at === family.length - 1} onClick={() => go(family[at + 1])} />
    </span>
  );
}
