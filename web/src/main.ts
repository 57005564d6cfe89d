// Where the page begins: look, language, sign-in link, then the page itself.
import { mount } from 'svelte';
import App from './App.svelte';
import { stream } from './api/live.svelte';
import { sight } from './api/sight.svelte';
import { keys } from './keys/keys.svelte';
import './look/tokens.css';
import './look/base.css';
import { look } from './look/theme.svelte';
import { take_code } from './pages/sign_in.svelte';
import { clock } from './parts/clock.svelte';
import { router } from './route/router.svelte';
import { load_language } from './words';

look.apply();
// Before anything else can read the address: the code in it is a secret.
void take_code();
await load_language();
router.start();
keys.start();
clock.start();
sight.start();
addEventListener('online', () => stream.hurry());
const look_or_rest = () => (document.hidden ? stream.rest() : stream.wake());
look_or_rest();
document.addEventListener('visibilitychange', look_or_rest);

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');
mount(App, { target });
