import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import type { WaitingItem } from '../../data/waiting.ts';
import { PageLink } from '../../ui/link.tsx';
import { GateAnswer } from '../graphs/gate-answer.tsx';
import { WaitingCard } from './waiting-card.tsx';

/** The question of a graph, with its answers. */
export function GateCard({ item: { graph, graphId, nodeId, question, sinceMs } }: { readonly item: Extract<WaitingItem, { kind: 'gate' }> }) {
  const { waiting } = useSession();
  return (
    <WaitingCard badge={t('Question')} title={graph} sinceMs={sinceMs} facts={<PageLink to={`/graphs/runs/${graphId}`}>{t('Open run')}</PageLink>}>
      <GateAnswer graphId={graphId} nodeId={nodeId} question={question} onAnswered={waiting.reload} />
    </WaitingCard>
  );
}
