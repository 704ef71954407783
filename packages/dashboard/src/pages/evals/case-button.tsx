import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Button, Failure } from '../../ui/parts.tsx';
import { saveBlob } from '../../ui/save-json.ts';

/** Downloads a test case made of a turn, for `gatehouse eval`. For admins. */
export function CaseButton({ turnId }: { readonly turnId: string }) {
  const { client, admin } = useSession();
  const { busy, error, run } = useAction();
  if (!admin) return null;
  const save = (): void =>
    run(async () => {
      const { yaml } = await client.call('eval.cases', { ref: turnId });
      saveBlob(`case-${turnId.slice(-8)}.yaml`, new Blob([yaml], { type: 'application/yaml' }));
    });
  return (
    <>
      <Button look="quiet" small icon="download" disabled={busy} onClick={save}>
        {t('Test case')}
      </Button>
      {error !== undefined && <Failure error={error} onRetry={save} />}
    </>
  );
}
