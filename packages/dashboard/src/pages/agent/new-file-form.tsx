import { t } from '../../language.ts';
import { useState } from 'react';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Field } from '../../ui/parts.tsx';

/** Asks for the path of a new file and opens the editor. */
export function NewFileForm({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (path: string) => void }) {
  const [path, setPath] = useState('documents/');
  return (
    <Dialog title={t('New file')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onDone(path.trim());
        }}
      >
        <div className="dialog-body">
          <Field label={t('Path')} hint={t('Relative to the workspace. Missing folders are created.')}>
            {(id, hint) => (
              <input id={id} aria-describedby={hint} required pattern=".*[^\/\s]\s*" value={path} onChange={(event) => setPath(event.target.value)} />
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary">
            {t('Create')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
