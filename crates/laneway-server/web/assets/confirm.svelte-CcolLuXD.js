<<<<<<<< HEAD:crates/laneway-server/web/assets/confirm.svelte-CcolLuXD.js
import{W as e,nt as t,tt as n}from"./words-m6AXZLeD.js";var r=new class{#e=t(null);get question(){return e(this.#e)}set question(e){n(this.#e,e)}#t=null;ask(e){return this.reply(null),this.question=e,new Promise(e=>this.#t=e)}reply(e){this.question=null,this.#t?.(e),this.#t=null}},i=e=>r.ask(e);export{r as n,i as t};
========
import{W as e,nt as t,tt as n}from"./words-DpOiF0jJ.js";var r=new class{#e=t(null);get question(){return e(this.#e)}set question(e){n(this.#e,e)}#t=null;ask(e){return this.reply(null),this.question=e,new Promise(e=>this.#t=e)}reply(e){this.question=null,this.#t?.(e),this.#t=null}},i=e=>r.ask(e);export{r as n,i as t};
>>>>>>>> faces:crates/laneway-server/web/assets/confirm.svelte-Ci3c0U91.js
