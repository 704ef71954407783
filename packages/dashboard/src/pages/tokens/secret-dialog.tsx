import { t } from '../../language.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Notice } from '../../ui/parts.tsx';

export interface MadeToken {
  readonly id: string;
  readonly secret: string;
}

/** Shows a new secret, once. */
export function SecretDialog({ made, onClose }: { readonly made: MadeToken; readonly onClose: () => void }) {
  return (
    <Dialog title={t('Secret of {id}', { id: made.id })} onClose={onClose}>
      <div className="dialog-body">
        <Notice tone="warn">{t("Store it now. It won't be shown again.")}</Notice>
        <pre className="secret" tabIndex={0} aria-label={t('Secret')}>
          <code>{made.secret}</code>
        </pre>
      </div>
      <footer>
        <CopyButton text={made.secret} label={t('Copy secret')} wide />
        <Button look="primary" onClick={onClose}>
          {t('I have stored it')}
        </Button>
      </footer>
    </Dialog>
  );
}
