<<<<<<<< HEAD:crates/laneway-server/web/assets/TaskLink-CBYNEwuL.js
import{F as e,L as t,P as n,Q as r,at as i,h as a,ot as o,q as s}from"./words-m6AXZLeD.js";import{g as c}from"./toasts.svelte-oNJ6Yt5K.js";var l=t(`<a class="break"> </a>`);function u(t,u){o(u,!0);var d=l(),f=r(d,!0);s(e=>{a(d,`href`,e),n(f,u.step)},[()=>c(u.run,u.step)]),e(t,d),i()}export{u as t};
========
import{F as e,L as t,P as n,Q as r,at as i,h as a,ot as o,q as s}from"./words-DpOiF0jJ.js";import{g as c}from"./toasts.svelte-QIzQsLJr.js";var l=t(`<a class="break"> </a>`);function u(t,u){o(u,!0);var d=l(),f=r(d,!0);s(e=>{a(d,`href`,e),n(f,u.step)},[()=>c(u.run,u.step)]),e(t,d),i()}export{u as t};
>>>>>>>> faces:crates/laneway-server/web/assets/TaskLink-DTQex4EA.js
